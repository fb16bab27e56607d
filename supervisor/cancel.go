package supervisor

import (
	"context"
	"errors"
	"slices"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
)

// EndCancelled sees to it that an attempt which the mailbox has marked cancelled
// ends, and returns once it has: a task's tree is killed; a long-lived worker is
// told, and killed after its stop.timeout unless it has settled the message by
// then. A completion that commits first wins. Where ctx ends first, it goes on.
func (sup *Supervisor) EndCancelled(ctx context.Context, h fence.Holder, ref mailbox.Ref) error {
	ended := make(chan struct{})
	sup.enforcing.Add(1)
	if !sup.job(func(ctx context.Context) {
		defer close(ended)
		defer func() { sup.enforcing.Add(-1); sup.changes.tell() }()
		sup.enforce(ctx, h, ref)
	}) {
		sup.enforcing.Add(-1)
		return stoppingNow()
	}
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// enforce sees to it that the work on ref ends, and returns when it has.
func (sup *Supervisor) enforce(ctx context.Context, h fence.Holder, ref mailbox.Ref) {
	c := sup.living.doom(h.Process)
	if c == nil {
		// Its claim was granted just now, or its end is being recorded.
		_, _ = sup.box.Await(ctx, ref.ID)
		sup.living.pardon(h.Process)
		return
	}
	sup.noteOf(c, ref.ID, protocol.EventCancelling, "")
	if c.task == nil {
		c.tellLost(ref, "cancelled")
		within, cancel := context.WithTimeout(ctx, c.slot.spec().Stop.Timeout)
		_, err := sup.box.Await(within, ref.ID)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || !slices.Contains(sup.box.Held(h.Process), ref) {
			return
		}
	}
	c.slot.condemn(c, byCancel, "", ref)
	_, _ = sup.box.Await(ctx, ref.ID)
}
