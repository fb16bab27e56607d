package bolt

import "runtime"

// WithSteps returns o with a hook that is called after each step of opening,
// moving the mark and closing that a crash could follow.
func WithSteps(o Options, reached func(step string)) Options {
	o.reached = reached
	return o
}

// WithMoves returns o with a hook around the commits of checkpoints.
func WithMoves(o Options, move func(commit func() error) error) Options {
	o.move = move
	return o
}

// WaitCheckpoint returns once no checkpoint is under way. Nobody updates meanwhile.
func WaitCheckpoint(db *DB) {
	if db.rotation != nil {
		<-db.rotation.done
	}
}

// SkipTo moves the store's numbers on, as if so many had been given.
func SkipTo(db *DB, token, sequence uint64) { db.state.token, db.state.sequence = token, sequence }

const MarkBlock = markBlock

// WaitQueued returns once n calls wait behind the one that runs.
func WaitQueued(db *DB, n int) {
	for {
		db.group.mu.Lock()
		queued := len(db.group.queue)
		db.group.mu.Unlock()
		if queued >= n {
			return
		}
		runtime.Gosched()
	}
}
