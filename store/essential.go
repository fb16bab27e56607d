package store

import "context"

// essentialKey is a pointer, so that to ask for it allocates nothing.
var essentialKey = new(int8)

// Essential returns a context whose Updates may use the room that an engine keeps
// for a full disk. It is for what must still be written there so that nothing is
// lost and room comes back: the end of an attempt, recovery, removal. A send is
// not essential, nor is a claim: they can wait for room.
func Essential(ctx context.Context) context.Context {
	return context.WithValue(ctx, essentialKey, true)
}

// IsEssential reports whether ctx comes from Essential.
func IsEssential(ctx context.Context) bool {
	essential, _ := ctx.Value(essentialKey).(bool)
	return essential
}
