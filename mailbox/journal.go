package mailbox

import (
	"context"
	"encoding/binary"
	"slices"
	"sync"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/store"
)

// journal is the box's event log: events lie in the store under keys of their
// own, in the order of their commits.
type journal struct {
	box *Box

	mu      sync.Mutex    // guards all below
	changed chan struct{} // closed and made anew when events were committed; nil while nobody waits
	queue   []Event       // given to Note, not yet written; at most maxNoted
	dropped int           // given to Note since queue was taken, and not kept
	writing bool
	closed  bool
	idle    chan struct{} // closed when the writer has ended; nil while none runs
	since   int64         // commits with events since those that are too many were removed
	enough  int64         // how many of them make it worth looking again; 0 = none
}

func newJournal(b *Box) *journal { return &journal{box: b} }

const eventVersion = 1

func (ev *Event) encode(of *stock) []byte {
	e := newEncoder(of, eventVersion, 64+len(ev.Actor)+len(ev.Kind)+len(ev.Category)+len(ev.Text))
	id, _ := ev.Process.Bytes()
	e.time(ev.At)
	e.string(string(ev.Kind))
	e.string(ev.Actor)
	e.uint(uint64(ev.Slot))
	e.raw(id[:])
	e.uint(uint64(ev.Message))
	e.uint(uint64(ev.Attempt))
	e.uint(uint64(ev.Token))
	e.string(ev.Category)
	e.string(ev.Text)
	return e.seal()
}

func decodeEvent(seq uint64, v []byte) (Event, error) {
	d, err := unseal(v, eventVersion, named{kind: "an event"})
	if err != nil {
		return Event{}, err
	}
	ev := Event{Seq: seq, At: d.time(), Kind: protocol.EventKind(d.string()), Actor: d.string(), Slot: int(d.uint())}
	if id := [16]byte(d.raw(16)); id != ([16]byte{}) {
		ev.Process = fence.ProcessOf(id)
	}
	ev.Message = ID(d.uint())
	ev.Attempt = int(d.uint())
	ev.Token = fence.Token(d.uint())
	ev.Category = d.string()
	ev.Text = d.string()
	return ev, d.done(named{kind: "an event"})
}

// eventTx appends ev to the journal within tx.
func (b *Box) eventTx(tx store.Tx, ev Event) { tx.Append(spaceEvent, ev.encode(nil)) }

// Record appends events to the journal; they are on disk when it returns. A zero
// At is the present time. At most store.MaxOps events.
func (b *Box) Record(ctx context.Context, evs ...Event) error {
	now := b.wall().UTC()
	err := b.store.Update(ctx, func(tx store.Tx) error {
		for _, ev := range evs {
			if ev.At.IsZero() {
				ev.At = now
			}
			ev.Text = printable(ev.Text)
			b.eventTx(tx, ev)
		}
		return nil
	})
	if err == nil {
		b.journal.appended()
	}
	return err
}

// RecordEssential is Record of what must be known also where the disk is full: it may
// use the room that is kept for the end of attempts.
func (b *Box) RecordEssential(ctx context.Context, evs ...Event) error {
	return b.Record(store.Essential(ctx), evs...)
}

// maxNoted bounds the events that wait to be written, of a few hundred bytes each, while
// the store does not answer.
const maxNoted = 10_000

// Note is Record in the background: it returns at once, and events are written
// in the order of the calls, several in one commit. Close waits for them. How many
// could not be written, or found more waiting than are kept, is logged.
func (b *Box) Note(evs ...Event) {
	now := b.wall().UTC()
	for i := range evs {
		if evs[i].At.IsZero() {
			evs[i].At = now
		}
	}
	if b.journal.note(evs) {
		b.log.Error("events are not kept until the store answers", "waiting", maxNoted)
	}
}

// note has evs written, and reports whether it is the first to find no room for all of them.
func (j *journal) note(evs []Event) (full bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return false
	}
	kept := min(len(evs), maxNoted-len(j.queue))
	full = kept < len(evs) && j.dropped == 0
	j.dropped += len(evs) - kept
	j.queue = append(j.queue, evs[:kept]...)
	if !j.writing {
		j.writing = true
		j.idle = make(chan struct{})
		go j.write(j.idle)
	}
	return full
}

// write writes what Note was given until nothing is left; close joins it.
func (j *journal) write(idle chan struct{}) {
	defer close(idle)
	for {
		j.mu.Lock()
		evs, dropped := j.queue, j.dropped
		j.queue, j.dropped = nil, 0
		if len(evs) == 0 {
			j.writing = false
			j.mu.Unlock()
			return
		}
		j.mu.Unlock()
		for step := range slices.Chunk(evs, store.MaxOps/2) {
			if err := j.box.Record(context.Background(), step...); err != nil {
				j.box.log.Error("events not written", "count", len(step), "err", err)
			}
		}
		if dropped > 0 {
			j.box.log.Error("events not written", "count", dropped, "err", "the store did not answer")
		}
	}
}

func (j *journal) close() {
	j.mu.Lock()
	j.closed = true
	idle := j.idle
	j.mu.Unlock()
	if idle != nil {
		<-idle
	}
}

// appended wakes those who follow the journal.
func (j *journal) appended() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.changed != nil {
		close(j.changed)
		j.changed = nil
	}
	if j.since++; j.enough > 0 && j.since >= j.enough {
		j.box.retention.again()
	}
}

// trimmed says that the events that are too many have been looked for just now.
func (j *journal) trimmed(enough int64, bounded bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.since, j.enough = 0, 0
	if bounded {
		j.enough = enough
	}
}

// Events returns up to limit events after seq in order (limit 0 = 100), and a
// channel that is closed when more have been written. seq 0 is the beginning.
// Unreadable events are left out.
func (b *Box) Events(ctx context.Context, seq uint64, limit int) (evs []Event, more <-chan struct{}, err error) {
	if limit <= 0 {
		limit = 100
	}
	j := b.journal
	j.mu.Lock()
	if j.changed == nil {
		j.changed = make(chan struct{})
	}
	more = j.changed
	j.mu.Unlock()
	err = b.store.View(ctx, func(r store.Reader) error {
		evs = evs[:0]
		from := binary.BigEndian.AppendUint64([]byte{spaceEvent}, seq+1)
		r.Scan(from, nil, func(k, v []byte) bool {
			if ev, err := decodeEvent(binary.BigEndian.Uint64(k[1:]), v); err == nil {
				evs = append(evs, ev)
			}
			return len(evs) < limit
		})
		return nil
	})
	return evs, more, err
}

// LastEvents returns the last n events in order.
func (b *Box) LastEvents(ctx context.Context, n int) (evs []Event, err error) {
	err = b.store.View(ctx, func(r store.Reader) error {
		evs = evs[:0]
		r.ScanBack([]byte{spaceEvent}, nil, func(k, v []byte) bool {
			if ev, err := decodeEvent(binary.BigEndian.Uint64(k[1:]), v); err == nil {
				evs = append(evs, ev)
			}
			return len(evs) < n
		})
		return nil
	})
	slices.Reverse(evs)
	return evs, err
}
