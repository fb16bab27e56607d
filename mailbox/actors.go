package mailbox

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store"
)

// actors is what is recorded of actors, as committed.
type actors struct {
	mu     sync.RWMutex // guards byName
	byName map[string]Actor
}

func newActors() *actors { return &actors{byName: map[string]Actor{}} }

// name returns b as a string, shared with the recorded actor of that name.
func (a *actors) name(b []byte) string {
	a.mu.RLock()
	defer a.mu.RUnlock()
	if known, ok := a.byName[string(b)]; ok {
		return known.Name
	}
	return string(b)
}

func (a *actors) get(name string) (Actor, bool) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	actor, ok := a.byName[name]
	return actor, ok
}

func (a *actors) set(actor Actor) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.byName[actor.Name] = actor
}

func (a *actors) all() []Actor {
	a.mu.RLock()
	defer a.mu.RUnlock()
	out := make([]Actor, 0, len(a.byName))
	for _, actor := range a.byName {
		out = append(out, actor)
	}
	slices.SortFunc(out, func(x, y Actor) int { return strings.Compare(x.Name, y.Name) })
	return out
}

func (b *Box) loadActors(ctx context.Context) error {
	return b.store.View(ctx, func(r store.Reader) error {
		r.Scan([]byte{spaceActor}, nil, func(k, v []byte) bool {
			a, err := decodeActor(string(k[1:]), v)
			if err != nil {
				b.log.Error("unreadable actor left alone", "key", string(k), "err", err)
				return true
			}
			b.actors.set(a)
			return true
		})
		return nil
	})
}

// policy is the recorded actor of a message's recipient. An actor whose record
// is missing is treated with care: its messages are parked, not lost.
func (b *Box) policy(actor string) Actor {
	if a, ok := b.actors.get(actor); ok {
		return a
	}
	return Actor{Name: actor, Mailbox: true, Park: true, Removed: true, Retry: Retry{MaxAttempts: 1}}
}

// SetActors records the actors of a run or a reload. Others on record are
// marked Removed and keep their messages. Whether an operator stopped or
// paused an actor is kept. Unchanged records are not written. Up to
// store.MaxOps changed records are one transaction; where a later step of more
// fails, those of before are put back, and an actor that was not known stays on
// record as Removed.
func (b *Box) SetActors(ctx context.Context, declared []Actor) error {
	defer b.busy.lock(actorsKey{})()
	byName := map[string]bool{}
	var changed, before []Actor
	for _, a := range declared {
		byName[a.Name] = true
		if old, ok := b.actors.get(a.Name); ok {
			a.Stopped, a.Paused = old.Stopped, old.Paused
			if a == old {
				continue
			}
			before = append(before, old)
		} else {
			unknown := a
			unknown.Removed = true
			before = append(before, unknown)
		}
		changed = append(changed, a)
	}
	for _, old := range b.actors.all() {
		if !byName[old.Name] && !old.Removed {
			before = append(before, old)
			old.Removed = true
			changed = append(changed, old)
		}
	}
	for done := 0; done < len(changed); done += store.MaxOps {
		err := b.putActors(ctx, changed[done:min(done+store.MaxOps, len(changed))])
		if err == nil {
			continue
		}
		for step := range slices.Chunk(before[:done], store.MaxOps) {
			if backErr := b.putActors(context.WithoutCancel(ctx), step); backErr != nil {
				b.log.Error("recorded actors not put back", "err", backErr)
			}
		}
		return err
	}
	return nil
}

// actorsKey is the turn of those who read an actor's record and write it anew.
type actorsKey struct{}

// putActors records actors, and what of it is for the journal, in one transaction.
func (b *Box) putActors(ctx context.Context, list []Actor, evs ...Event) error {
	err := b.store.Update(ctx, func(tx store.Tx) error {
		for _, a := range list {
			v, err := a.encode()
			if err != nil {
				return err
			}
			tx.Put(actorKey(a.Name), v)
		}
		for _, ev := range evs {
			b.eventTx(tx, ev)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, a := range list {
		b.actors.set(a)
		b.index.pause(a.Name, a.heldBack())
	}
	b.retention.again() // by what holds now
	return nil
}

// Actors returns every actor on record by name, removed ones included.
func (b *Box) Actors() []Actor { return b.actors.all() }

// Actor returns one actor on record.
func (b *Box) Actor(name string) (Actor, error) {
	a, ok := b.actors.get(name)
	if !ok {
		return Actor{}, unknownActor(name, "no actors.yaml that was run on this store declares it")
	}
	return a, nil
}

// SetStopped records whether an operator wants the actor stopped; it outlives
// the supervisor.
func (b *Box) SetStopped(ctx context.Context, name string, stopped bool) error {
	defer b.busy.lock(actorsKey{})()
	a, err := b.Actor(name)
	if err != nil || a.Stopped == stopped {
		return err
	}
	a.Stopped = stopped
	return b.putActors(ctx, []Actor{a})
}

// SetPaused records whether deliveries to the actor are held back; it outlives
// the supervisor, and the journal tells of each change. Claims by id go through
// all the same.
func (b *Box) SetPaused(ctx context.Context, name string, paused bool) error {
	defer b.busy.lock(actorsKey{})()
	a, err := b.Actor(name)
	if err != nil || a.Paused == paused {
		return err
	}
	a.Paused = paused
	kind := protocol.EventResumed
	if paused {
		kind = protocol.EventPaused
	}
	err = b.putActors(ctx, []Actor{a}, Event{At: b.wall().UTC(), Kind: kind, Actor: name, Text: "by an operator"})
	if err == nil {
		b.journal.appended()
	}
	return err
}

func unknownActor(name, why string) error {
	return refusal.New(refusal.UnknownActor, "there is no actor "+quote(name), why,
		"see `sovereign status` for the actors; declare it in actors.yaml and run that once")
}

func unknownRecipient(name, why string) error {
	return refusal.New(refusal.UnknownActor, "there is no actor "+quote(name)+" to send to", why,
		"see `sovereign status` for the actors; declare it in actors.yaml and run that once")
}
