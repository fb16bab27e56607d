package server

import (
	"errors"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

func (c *Control) inboxList(in asking, p protocol.InboxListParams) (any, error) {
	f := mailbox.Filter{Actor: p.Actor, From: p.From, Subject: p.Subject, Older: p.Older.Std(), Limit: p.Limit, After: p.After, Newest: p.Newest}
	if p.Limit < 0 {
		return nil, badParam("limit is negative", "give 1 or more, or leave it out for 50")
	}
	f.Limit = min(f.Limit, 1000)
	if p.State != "" {
		state, err := mailbox.ParseState(p.State)
		if err != nil {
			return nil, err
		}
		f.State = state
	}
	if err := in.bulky(); err != nil {
		return nil, err
	}
	page, err := c.box.List(in.run, f)
	if err != nil {
		return nil, err
	}
	out := protocol.Inbox{Messages: make([]protocol.Message, 0, len(page.Messages)), Next: page.Next, Looked: page.Looked}
	left := lineRoom
	for i, m := range page.Messages {
		// The first has room whatever its size: the bounds of a message see to that.
		if left -= listedAtMost(m); left < 0 && i > 0 {
			out.Next = page.Messages[i-1].ID.String()
			break
		}
		out.Messages = append(out.Messages, message(m))
	}
	return out, nil
}

func (c *Control) inboxShow(in asking, p protocol.InboxShowParams) (any, error) {
	id, err := mailbox.ParseID(p.ID)
	if err != nil {
		return nil, err
	}
	if err := in.bulky(); err != nil {
		return nil, err
	}
	d, err := c.box.Show(in.run, id)
	if err != nil {
		return nil, err
	}
	d.Why = c.waiting(d)
	return detail(d), nil
}

// maxIDs bounds the messages of one request.
const maxIDs = 1000

// repeated returns the first id of several that is named for the second time.
func repeated(ids []string) (id string, twice bool) {
	seen := make(map[string]bool, len(ids))
	for _, id := range ids {
		if seen[id] {
			return id, true
		}
		seen[id] = true
	}
	return "", false
}

// each does one thing to each of several messages, side by side; one that is
// refused stops none of the others, and one that does not stand as the request asks for is
// left. One that is named twice refuses the request: side by side, nobody could tell which
// of the two answers counts.
func (c *Control) each(p protocol.InboxIDsParams, do func(id mailbox.ID, as mailbox.Standing) (state protocol.MessageState, err error)) (any, error) {
	if len(p.IDs) == 0 || len(p.IDs) > maxIDs {
		return nil, badParam("ids holds "+strconv.Itoa(len(p.IDs))+" ids", "name from 1 to 1000 messages")
	}
	if id, twice := repeated(p.IDs); twice {
		return nil, badParam("ids names "+protocol.Cut(id, 40)+" twice", "name each message once: nothing was changed")
	}
	as, err := standing(p, time.Now())
	if err != nil {
		return nil, err
	}
	out := protocol.InboxChanged{Results: make([]protocol.InboxChange, len(p.IDs))}
	var all sync.WaitGroup
	for i, text := range p.IDs {
		all.Go(func() {
			id, err := mailbox.ParseID(text)
			var state protocol.MessageState
			if err == nil {
				state, err = do(id, as)
			}
			left := errors.Is(err, mailbox.ErrStandsOtherwise) || as != mailbox.Standing{} && refusal.Has(err, refusal.MessageMissing)
			if left {
				err = nil
			}
			out.Results[i] = protocol.InboxChange{ID: text, State: state, Left: left, Error: protocol.ErrorOf(err)}
		})
	}
	all.Wait()
	return out, nil
}

// standing is how the messages of a request must stand at now.
func standing(p protocol.InboxIDsParams, now time.Time) (as mailbox.Standing, err error) {
	if p.State != "" {
		as.State, err = mailbox.ParseState(p.State)
	}
	if p.Older > 0 {
		as.EndedBy = now.Add(-p.Older.Std())
	}
	return as, err
}

func (c *Control) inboxRetry(in asking, p protocol.InboxIDsParams) (any, error) {
	return c.each(p, func(id mailbox.ID, as mailbox.Standing) (protocol.MessageState, error) {
		if err := c.box.RetryIf(in.run, id, as); err != nil {
			return "", err
		}
		return protocol.MessageNew, nil
	})
}

func (c *Control) inboxDrop(in asking, p protocol.InboxIDsParams) (any, error) {
	return c.each(p, func(id mailbox.ID, as mailbox.Standing) (protocol.MessageState, error) {
		return "", c.box.DropIf(in.run, id, as)
	})
}

// inboxCancel answers with the state that the message has in the end: of one
// that runs once its attempt has ended, DONE where its completion was first. An
// upgrade meanwhile waits for that.
func (c *Control) inboxCancel(in asking, p protocol.InboxIDsParams) (any, error) {
	return c.each(p, func(id mailbox.ID, as mailbox.Standing) (protocol.MessageState, error) {
		found, err := c.box.CancelIf(in.run, id, as)
		switch {
		case err != nil:
			return "", err
		case !found.Running:
			return protocol.MessageDead, nil
		case c.supervisor != nil:
			ctx, done := in.untilNobodyAsks()
			err = c.supervisor.Cancel(ctx, found.Holder, found.Ref)
			done()
		default:
			// The store's lock is ours: no supervisor has the attempt's process.
			_, err = c.box.EndCancelled(in.run, found.Holder, found.Ref)
		}
		// It is marked, and ends also where nobody waits for that any more. That it
		// has ended meanwhile is no refusal.
		if err != nil && isRefusal(err) && !refusal.Has(err, refusal.WrongState) {
			return "", err
		}
		d, err := c.box.Show(in.run, id)
		if err != nil {
			return "", err
		}
		return protocol.MessageState(d.State.String()), nil
	})
}

func (c *Control) inboxPurge(in asking, p protocol.InboxPurgeParams) (any, error) {
	state, err := mailbox.ParseState(p.State)
	if err != nil {
		return nil, err
	}
	n, err := c.box.Purge(in.run, state, p.Older.Std())
	if err != nil {
		return nil, err
	}
	return protocol.InboxPurged{Removed: n}, nil
}

func (c *Control) send(in asking, p protocol.SendParams) (any, error) {
	if p.Claim != nil {
		return nil, badParam("claim is given", "only a worker's sends are staged; send on worker.sock with its identity")
	}
	m := outgoing(p.Outgoing)
	m.From = p.From
	sent, err := c.box.Send(in.run, m)
	if err != nil {
		return nil, err
	}
	return protocol.SendResult{ID: sent.ID.String(), Duplicate: sent.Duplicate, Recipient: c.obstacle(m.To)}, nil
}

// obstacle says what keeps an actor from working on what is sent to it, "" for
// nothing that is known.
func (c *Control) obstacle(actor string) string {
	a, err := c.box.Actor(actor)
	switch {
	case err != nil: // the send stands all the same
		return ""
	case a.Stopped:
		return string(protocol.SlotStopped)
	case a.Paused:
		return string(protocol.ActorPaused)
	case c.supervisor != nil && c.supervisor.HasFailed(actor):
		return string(protocol.SlotFailed)
	}
	return ""
}

func (c *Control) await(in asking, p protocol.AwaitParams) (any, error) {
	id, err := mailbox.ParseID(p.ID)
	if err != nil {
		return nil, err
	}
	done, err := in.waiting()
	if err != nil {
		return nil, err
	}
	defer done()
	ctx, cancel := within(in.wait, p.Timeout.Std())
	defer cancel()
	d, err := c.box.Await(ctx, id)
	if err != nil && ctx.Err() != nil && !isRefusal(err) {
		if passedOn(in.wait) {
			return nil, anew(protocol.MethodAwait, p)
		}
		if in.wait.Err() != nil {
			return nil, refusal.New(refusal.Unavailable, "the wait for "+p.ID+" was ended", "the supervisor stops", "ask again").Later()
		}
		d, err = c.box.Show(in.run, id) // as it stands when the time is up
	}
	if err != nil {
		return nil, err
	}
	return detail(d), nil
}

// status without a supervisor tells what is on record.
func (c *Control) status(in asking, p protocol.StatusParams) (any, error) {
	if err := in.bulky(); err != nil {
		return nil, err
	}
	all, err := c.box.AllCounts(in.run)
	if err != nil {
		return nil, err
	}
	out := protocol.Status{Supervisor: protocol.SupervisorStatus{State: protocol.SupervisorStopped, Data: c.data}}
	if c.supervisor != nil {
		out = c.supervisor.Status()
		if out.Supervisor.State == "" {
			out.Supervisor.State = protocol.SupervisorRunning
		}
		s := &out.Supervisor
		s.PID, s.Version, s.Data = os.Getpid(), c.version, c.data
	}
	if c.storage != nil && p.Actor == "" {
		room := c.storage.Room()
		out.Store = &room
	}
	known := map[string]int{}
	for i := range out.Actors {
		known[out.Actors[i].Actor] = i
	}
	for _, a := range c.box.Actors() {
		i, ok := known[a.Name]
		if !ok {
			if a.Removed && !waits(all[a.Name]) {
				continue
			}
			i = len(out.Actors)
			out.Actors = append(out.Actors, protocol.ActorStatus{Actor: a.Name, State: recordedState(a)})
		}
		out.Actors[i].Paused = a.Paused
		out.Actors[i].Sick = c.box.Sick(a.Name)
		out.Actors[i].Inbox = counts(all[a.Name])
	}
	actors := out.Actors
	out.Actors = []protocol.ActorStatus{}
	for _, a := range actors {
		if a.Slots == nil {
			a.Slots = []protocol.SlotStatus{}
		}
		if p.Actor == "" || p.Actor == a.Actor {
			out.Actors = append(out.Actors, a)
		}
	}
	if p.Actor != "" && len(out.Actors) == 0 {
		return nil, refusal.New(refusal.UnknownActor, "there is no actor "+quoted(p.Actor), "no actors.yaml that was run here declares it", "see `sovereign status`")
	}
	return out, nil
}

func waits(c mailbox.Counts) bool { return c.New+c.Claimed+c.Done+c.Dead+c.Parked > 0 }

// recordedState is the state of an actor that no supervisor runs.
func recordedState(a mailbox.Actor) protocol.SlotState {
	if a.Removed {
		return protocol.ActorRemoved
	}
	if a.Stopped {
		return protocol.SlotStopped // by an operator: it would not run with one either
	}
	return protocol.ActorOffline
}
