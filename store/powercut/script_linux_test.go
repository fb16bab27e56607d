package powercut_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/mailbox/mailboxtest"
	"github.com/sovereign-run/sovereign/recovery"
	"github.com/sovereign-run/sovereign/store"
)

// A model says what each message is once a crash at this moment was recovered
// from: N, D, X (dead), P, and nothing for what cannot be seen.
type model map[mailbox.ID]string

// world is the mailbox that the script works on, and what the script knows.
type world struct {
	h       *mailboxtest.House
	store   *recorder
	mu      sync.Mutex // guards all below
	model   model
	old     model // when the backup was made
	ids     map[string]mailbox.ID
	refs    map[string]mailbox.Ref
	holders map[string]fence.Holder
	started int // processes so far
	marked  bool
	acked   func(model) // called with mu held
}

func newWorld(dir string) *world {
	w := &world{h: mailboxtest.New(dir), model: model{}, ids: map[string]mailbox.ID{},
		refs: map[string]mailbox.Ref{}, holders: map[string]fence.Holder{}, acked: func(model) {}}
	// A log that is full after a few commits, and that the larger ones do not fit in.
	w.h.Options.LogSize = 4 << 10
	// Each run has the same operations, and an asynchronous one is unsynced for as long as can be.
	w.h.Options.SyncDelay = -1
	w.store = &recorder{}
	w.h.Wrap = w.store.wrap
	return w
}

// is notes that the message name is in state after a crash from now on.
func (w *world) is(name, state string) { w.set(w.ids[name], state) }

func (w *world) set(id mailbox.ID, state string) {
	if state == "" {
		delete(w.model, id)
	} else {
		w.model[id] = state
	}
}

// process is the next process, the same in every run of the script.
func (w *world) process() fence.Process {
	w.started++
	return fence.ProcessOf([16]byte{15: byte(w.started)})
}

// A step is one thing that somebody asks for. It may be repeated after a refusal.
type step struct {
	name string
	// several: it is several transactions, and each may be stored without the next.
	several bool
	// essential: it works on a full disk.
	essential bool
	do        func(ctx context.Context, w *world) error
}

func actors(more ...string) (all []mailbox.Actor) {
	for _, name := range append([]string{"work", "other", "careful"}, more...) {
		a := mailboxtest.Actor(name)
		a.Park = name == "careful"
		all = append(all, a)
	}
	return all
}

func send(name, to string, o mailbox.Outgoing) step {
	return step{name: "send " + name, do: func(ctx context.Context, w *world) error {
		o.To = to
		s, err := w.h.Box.Send(ctx, o)
		if err == nil {
			w.ids[name] = s.ID
			w.is(name, "N")
		}
		return err
	}}
}

func begin(holder, actor string, slot int) step {
	return step{name: "begin " + holder, do: func(ctx context.Context, w *world) error {
		l, err := w.h.Box.Begin(ctx, fence.Slot{Actor: actor, Number: slot}, w.process(), time.Hour, mailbox.Event{Kind: "started"})
		if err == nil {
			w.holders[holder] = l.Holder()
		}
		return err
	}}
}

// claim claims a message that is lost to state when its worker is.
func claim(holder, name, lost string) step {
	return step{name: "claim " + name, do: func(ctx context.Context, w *world) error {
		got, err := w.h.Box.Claim(ctx, w.holders[holder], mailbox.ClaimRequest{ID: w.ids[name]})
		if err == nil && len(got) != 1 {
			err = fmt.Errorf("claimed %d messages", len(got))
		}
		if err == nil {
			w.refs[name] = mailboxtest.RefOf(got[0])
			w.is(name, lost)
		}
		return err
	}}
}

// settle ends a claim; what was staged in it under staged is visible from then on
// if it is a completion.
func settle(holder, name string, o mailbox.Outcome, state string, staged []string, sends ...string) step {
	s := step{name: "settle " + name + " as " + string(o.Category)}
	s.several = len(sends) > 0
	s.essential = len(sends) == 0 // what it sends is refused like any send
	s.do = func(ctx context.Context, w *world) error {
		var out []mailbox.Outgoing
		for _, to := range sends {
			out = append(out, mailbox.Outgoing{To: to, Body: []byte("sent with a completion")})
		}
		got, err := w.h.Box.Settle(ctx, w.holders[holder], w.refs[name], o, out)
		if err != nil {
			return err
		}
		w.is(name, state)
		if o.Verdict == mailbox.Complete {
			for _, s := range staged {
				w.is(s, "N")
			}
			for _, id := range got.Visible {
				w.set(id, "N")
			}
		}
		return nil
	}
	return s
}

func stage(holder, name string, staged ...string) step {
	return step{name: fmt.Sprintf("stage %d in %s", len(staged), name), several: true, do: func(ctx context.Context, w *world) error {
		for _, s := range staged {
			if _, done := w.ids[s]; done {
				continue
			}
			sent, err := w.h.Box.Stage(ctx, w.holders[holder], w.refs[name], mailbox.Outgoing{To: "other", Body: []byte(s)})
			if err != nil {
				return err
			}
			w.ids[s] = sent.ID
		}
		return nil
	}}
}

func do(name string, fn func(ctx context.Context, w *world) error) step {
	return step{name: name, do: fn}
}

func after(d time.Duration) step {
	return do("wait "+d.String(), func(_ context.Context, w *world) error { w.h.Advance(d); return nil })
}

// on is a step about one message.
func on(what, name, state string, fn func(ctx context.Context, w *world, id mailbox.ID) error) step {
	return do(what+" "+name, func(ctx context.Context, w *world) error {
		err := fn(ctx, w, w.ids[name])
		if err == nil {
			w.is(name, state)
		}
		return err
	})
}

func names(prefix string, n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("%s%d", prefix, i))
	}
	return all
}

var open = do("open", func(_ context.Context, w *world) error { return w.h.Open() })

func lost(mailbox.Ref) mailbox.Outcome { return mailboxtest.Lost("KILL") }

func leave(holder string, claimed map[string]string) step {
	return step{name: "leave " + holder, several: true, essential: true, do: func(ctx context.Context, w *world) error {
		_, err := w.h.Box.Leave(ctx, w.holders[holder], lost, mailbox.Event{Kind: "exited"})
		if err == nil {
			for name, state := range claimed {
				w.is(name, state)
			}
		}
		return err
	}}
}

// reconcile is what a supervisor does first. Everything that was claimed is lost,
// as the model has said all along.
var reconcile = step{name: "reconcile", several: true, do: func(ctx context.Context, w *world) error {
	_, err := recovery.New(w.h.Box, recovery.NewWorkspaces(w.h.Dir), nil).Reconcile(ctx, nil)
	return err
}}

// startTask starts a task on the next message, under name.
func startTask(name string) step {
	return do("start the task "+name, func(ctx context.Context, w *world) error {
		l, d, err := w.h.Box.StartTask(ctx, fence.Slot{Actor: "work", Number: 3}, w.process(), time.Hour)
		if err == nil {
			w.holders[name], w.refs[name], w.ids[name] = l.Holder(), mailboxtest.RefOf(d), d.ID
		}
		return err
	})
}

// script is the life of a store: every kind of transaction, an orderly close, and
// work that is under way when it ends.
func script() []step {
	release := mailboxtest.Released()
	return []step{
		open,
		do("declare the actors", func(ctx context.Context, w *world) error { return w.h.Box.SetActors(ctx, actors("gone")) }),
		send("a", "work", mailbox.Outgoing{Body: []byte("first"), Headers: map[string]string{"h": "v"}, Subject: "s"}),
		send("b", "work", mailbox.Outgoing{Priority: 5}),
		send("c", "work", mailbox.Outgoing{}),
		send("key", "other", mailbox.Outgoing{Key: "once", Body: []byte("k")}),
		send("key", "other", mailbox.Outgoing{Key: "once", Body: []byte("k")}),
		send("later", "other", mailbox.Outgoing{Delay: time.Hour}),
		together(8),
		begin("A", "work", 1),
		begin("B", "work", 2),

		claim("A", "a", "N"),
		do("renew", func(ctx context.Context, w *world) error {
			_, _, err := w.h.Box.Renew(ctx, w.holders["A"], w.refs["a"], new("half"))
			return err
		}),
		settle("A", "a", mailboxtest.Completed("the result"), "D", nil),
		claim("A", "b", "N"),
		stage("A", "b", names("b", 2)...),
		settle("A", "b", mailboxtest.Completed(""), "D", names("b", 2), "other"),
		claim("A", "c", "N"),
		// More than one transaction may make visible, or take back.
		settle("A", "c", mailboxtest.Completed(""), "D", nil, slices.Repeat([]string{"other"}, 30)...),

		send("d", "work", mailbox.Outgoing{Body: bytes.Repeat([]byte("d"), 9000)}),
		claim("A", "d", "N"),
		stage("A", "d", names("d", 13)...),
		settle("A", "d", mailboxtest.Failed("first"), "N", names("d", 13)),
		after(5 * time.Second),
		claim("B", "d", "N"),
		settle("B", "d", mailboxtest.Failed("second"), "N", nil),
		after(5 * time.Second),
		claim("A", "d", "X"),
		settle("A", "d", mailboxtest.Failed("third"), "X", nil),
		on("retry", "d", "N", func(ctx context.Context, w *world, id mailbox.ID) error { return w.h.Box.Retry(ctx, id) }),
		claim("A", "d", "N"),
		settle("A", "d", release, "N", nil),
		claim("A", "d", "N"),
		after(time.Minute),
		{name: "sweep", several: true, essential: true, do: func(ctx context.Context, w *world) error {
			swept, err := w.h.Box.SweepExpired(ctx)
			if err == nil && len(swept) != 1 {
				err = fmt.Errorf("swept %d", len(swept))
			}
			return err
		}},
		after(time.Minute),

		startTask("t"),
		{name: "end the task", essential: true, do: func(ctx context.Context, w *world) error {
			_, err := w.h.Box.EndTask(ctx, w.holders["t"], w.refs["t"], mailboxtest.Completed("out"))
			if err == nil {
				w.is("t", "D")
			}
			return err
		}},
		send("e", "work", mailbox.Outgoing{}),
		startTask("u"),
		{name: "take the start back", essential: true, do: func(ctx context.Context, w *world) error {
			return w.h.Box.Unstart(ctx, w.holders["u"], w.refs["u"], mailbox.Event{Kind: "spawn_failed"})
		}},
		claim("B", "e", "N"),
		stage("B", "e", names("e", 3)...),
		leave("B", map[string]string{"e": "N"}),

		begin("C", "careful", 1),
		send("p", "careful", mailbox.Outgoing{}),
		send("q", "careful", mailbox.Outgoing{}),
		claim("C", "p", "P"),
		claim("C", "q", "P"),
		on("cancel", "q", "X", func(ctx context.Context, w *world, id mailbox.ID) error {
			c, err := w.h.Box.Cancel(ctx, id)
			if err == nil && !c.Running {
				err = errors.New("it does not run")
			}
			return err
		}),
		on("end the cancelled", "q", "X", func(ctx context.Context, w *world, _ mailbox.ID) error {
			_, err := w.h.Box.EndCancelled(ctx, w.holders["C"], w.refs["q"])
			return err
		}),
		leave("C", map[string]string{"p": "P"}),
		on("retry", "p", "N", func(ctx context.Context, w *world, id mailbox.ID) error { return w.h.Box.Retry(ctx, id) }),
		on("cancel", "p", "X", func(ctx context.Context, w *world, id mailbox.ID) error {
			_, err := w.h.Box.Cancel(ctx, id)
			return err
		}),
		on("drop", "p", "", func(ctx context.Context, w *world, id mailbox.ID) error { return w.h.Box.Drop(ctx, id) }),

		do("record events", func(ctx context.Context, w *world) error {
			return w.h.Box.Record(ctx, mailbox.Event{Kind: "one"}, mailbox.Event{Kind: "two", Text: "text"})
		}),
		do("pause", func(ctx context.Context, w *world) error { return w.h.Box.SetPaused(ctx, "other", true) }),
		do("stop", func(ctx context.Context, w *world) error { return w.h.Box.SetStopped(ctx, "gone", true) }),
		do("acquire", func(ctx context.Context, w *world) error {
			l, err := w.h.Leases.Acquire(ctx, fence.Slot{Actor: "other", Number: 9}, w.process(), time.Minute)
			w.holders["L"] = l.Holder()
			return err
		}),
		do("renew the lease", func(ctx context.Context, w *world) error {
			_, err := w.h.Leases.Renew(ctx, w.holders["L"], time.Hour)
			return err
		}),
		do("release the lease", func(ctx context.Context, w *world) error { return w.h.Leases.Release(ctx, w.holders["L"]) }),

		// More numbers than the mark is ahead: it must move before they are on disk.
		do("use up a block of numbers", func(ctx context.Context, w *world) error {
			if w.marked {
				return nil
			}
			err := w.h.Store.Update(ctx, func(tx store.Tx) error {
				for range 1<<20 + 1 {
					tx.Next()
				}
				return nil
			})
			w.marked = err == nil
			return err
		}),
		send("f", "work", mailbox.Outgoing{}),
		send("large", "work", mailbox.Outgoing{Body: bytes.Repeat([]byte("large"), 100<<10)}),
		purge(mailbox.Done, "D"),
		purge(mailbox.Dead, "X"),
		do("declare fewer actors", func(ctx context.Context, w *world) error { return w.h.Box.SetActors(ctx, actors()) }),

		claim("A", "f", "N"),
		stage("A", "f", names("f", 2)...),
		do("close", func(_ context.Context, w *world) error { return w.h.Close() }),
		open,
		reconcile,
		begin("E", "work", 1),
		after(time.Minute),
		claim("E", "large", "N"),
		stage("E", "large", names("large", 2)...),
	}
}

// afterwards is what follows when the process of script was killed.
func afterwards() []step {
	return []step{
		open,
		reconcile,
		begin("F", "work", 1),
		send("g", "work", mailbox.Outgoing{}),
		claim("F", "g", "N"),
		settle("F", "g", mailboxtest.Completed(""), "D", nil),
		do("close", func(_ context.Context, w *world) error { return w.h.Close() }),
	}
}

func purge(state mailbox.State, letter string) step {
	return step{name: "purge " + state.String(), several: true, do: func(ctx context.Context, w *world) error {
		_, err := w.h.Box.Purge(ctx, state, 0)
		if err == nil {
			maps.DeleteFunc(w.model, func(_ mailbox.ID, s string) bool { return s == letter })
		}
		return err
	}}
}

// together sends n messages at once, which share commits.
func together(n int) step {
	return step{name: "send together", several: true, do: func(ctx context.Context, w *world) error {
		w.store.loosen()
		defer w.store.tighten()
		errs := make([]error, n)
		var all sync.WaitGroup
		for i, name := range names("together", n) {
			w.mu.Lock()
			_, done := w.ids[name]
			w.mu.Unlock()
			if done {
				continue
			}
			all.Go(func() {
				s, err := w.h.Box.Send(ctx, mailbox.Outgoing{To: "other", Body: []byte(name)})
				errs[i] = err
				if err != nil {
					return
				}
				w.mu.Lock()
				defer w.mu.Unlock()
				w.ids[name] = s.ID
				w.is(name, "N")
				w.acked(w.model)
			})
		}
		all.Wait()
		return errors.Join(errs...)
	}}
}
