package mailbox

import (
	"context"
	"time"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/store"
)

// A Successor is the process that is to follow another one in its slot, with the event
// that tells of it.
type Successor struct {
	Process fence.Process
	TTL     time.Duration // of its lease
	Event   Event
}

// LeaveTo is Leave of the process h, which was long-lived, and Begin of its successor in
// its slot, by one commit: the lease is passed on in the transaction that releases it.
// There is no state in between, neither on record nor for another program. What does not
// fit that transaction of what h held is ended after it, as by Leave.
//
// With an error no lease is kept. As a rule nothing of both is stored then: a full disk
// refuses them, for an end is essential where a beginning is not. The caller records them
// one after the other, by Leave and Begin of the same process, whatever is stored.
func (b *Box) LeaveTo(ctx context.Context, h fence.Holder, outcome func(Ref) Outcome, ev Event, next Successor) (fence.Lease, error) {
	var lease fence.Lease
	defer b.leases.Starting(h.Slot)()
	next.Event.At = b.wall().UTC()
	_, err := b.leave(ctx, h, outcome, ev, func(tx store.Tx) (err error) {
		lease, err = b.beginTx(tx, h.Slot, next.Process, next.TTL, next.Event)
		return err
	})
	if err != nil {
		return fence.Lease{}, err
	}
	b.leases.Keep(h.Slot, lease.Token)
	return lease, nil
}
