package supervisor

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
)

// living are the children that live, by their identity.
type living struct {
	mu       sync.RWMutex
	children map[fence.Process]*child   // mu guards it
	doomed   map[fence.Process]struct{} // mu guards it: to be ended, and not known to live yet
}

func newLiving() living {
	return living{children: map[fence.Process]*child{}, doomed: map[fence.Process]struct{}{}}
}

// add makes c known, and reports whether it is doomed.
func (l *living) add(c *child) (doomed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.children[c.holder.Process] = c
	_, doomed = l.doomed[c.holder.Process]
	return doomed
}

// doom returns the child p, or, where it is not known, has add tell so until
// pardon is called: it may have been granted its claim just now.
func (l *living) doom(p fence.Process) *child {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.children[p]; c != nil {
		return c
	}
	l.doomed[p] = struct{}{}
	return nil
}

func (l *living) pardon(p fence.Process) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.doomed, p)
}

func (l *living) drop(c *child) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.children, c.holder.Process)
}

func (l *living) get(p fence.Process) *child {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.children[p]
}

func (l *living) all() []*child {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return slices.Collect(maps.Values(l.children))
}

// Lookup returns what the living process p may speak for; ok is false where p
// does not live. A child is known before its program runs, and until nothing
// of its tree is left.
func (sup *Supervisor) Lookup(p fence.Process) (h fence.Holder, mode config.Mode, ok bool) {
	c := sup.living.get(p)
	if c == nil {
		return fence.Holder{}, "", false
	}
	return c.holder, c.def.spec.Mode, true
}

// Alive says that p showed a sign of life just now, for its watchdog.
func (sup *Supervisor) Alive(p fence.Process) {
	if c := sup.living.get(p); c != nil {
		c.aliveAt.Store(int64(sup.now()))
	}
}

// Claiming says that a claim of p waits, which is a sign of life until done is
// called.
func (sup *Supervisor) Claiming(p fence.Process) (done func()) {
	c := sup.living.get(p)
	if c == nil {
		return func() {}
	}
	c.pending.Add(1)
	return func() {
		c.aliveAt.Store(int64(sup.now()))
		c.pending.Add(-1)
	}
}

// Draining returns a context that ends when the living process p is to claim no more:
// its slot goes. Of one that does not live it never ends.
func (sup *Supervisor) Draining(p fence.Process) context.Context {
	if c := sup.living.get(p); c != nil {
		return c.claims
	}
	return context.Background()
}

// Ready says that p declared itself ready. Where its actor does not ask for that,
// it changes nothing.
func (sup *Supervisor) Ready(p fence.Process) {
	c := sup.living.get(p)
	if c == nil {
		return
	}
	if r := c.def.spec.Ready; r == nil || !r.Notify {
		return
	}
	c.slot.isReady(c)
}

// LeaseLost says that the store refused the living process p because it no longer
// knows its lease: a person took it, or it cannot be read. The worker is told to
// stop at once, as far as it has a channel; its writes are refused anyway (P0).
func (sup *Supervisor) LeaseLost(p fence.Process, why string) {
	if c := sup.living.get(p); c != nil && c.tellLeaseLost(why) {
		sup.log.Warn("a living process has lost its lease", "process", p.Short(), "err", why)
		sup.note(c, protocol.EventLeaseLost, why)
	}
}

// overdue is told that a claim of a long-lived worker has used up its actor's
// timeout: the process is killed, and the message ends as timeout; or that a claim
// makes no progress, which ends it in the same way, as no_progress.
func (sup *Supervisor) overdue(h fence.Holder, ref mailbox.Ref, why mailbox.Category) {
	c := sup.living.get(h.Process)
	if c == nil {
		return // its end is under way
	}
	if why == mailbox.CategoryNoProgress {
		limit := c.slot.spec().ProgressTimeout.String()
		c.tellLost(ref, string(why))
		sup.noteOf(c, ref.ID, protocol.EventNoProgress, "the progress of message "+ref.ID.String()+" did not change for "+limit)
		c.slot.condemn(c, byNoProgress, limit, ref)
		return
	}
	sup.noteOf(c, ref.ID, protocol.EventTimeout, "message "+ref.ID.String()+" took longer than "+c.slot.spec().Timeout.String())
	c.slot.condemn(c, byTimeout, c.slot.spec().Timeout.String(), ref)
}

// claimLost is told that a claim was taken from a process that may live on.
func (sup *Supervisor) claimLost(h fence.Holder, ref mailbox.Ref, reason string) {
	if c := sup.living.get(h.Process); c != nil {
		c.tellLost(ref, reason)
	}
}
