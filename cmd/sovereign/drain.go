package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/supervisor"
)

// errDrained says that nothing is left to do: a clean end.
var errDrained = errors.New("drained")

// untilDrained returns once no declared actor has a message that waits or runs:
// errDrained, or a refusal where any became DEAD or PARKED since the run began, or where
// what is left belongs to actors that nobody works for. When ctx ends first it
// returns ctx's cause. Where nothing runs for a while it logs what it waits for, and
// again once that is something else.
func untilDrained(ctx context.Context, box *mailbox.Box, sup *supervisor.Supervisor, since uint64, log *slog.Logger) error {
	select {
	case <-sup.Recovered():
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	seen := since
	gaveUp := map[string]bool{}
	var told []drainWait
	var quiet <-chan time.Time // since the first change after it last fired
	for fired := false; ; {
		// What can change the answer is asked for before the answer is looked at.
		changed := sup.Changes()
		events, more, err := box.Events(ctx, seen, 0)
		if err != nil {
			return err
		}
		for _, e := range events {
			seen = e.Seq
			if isLoss(e) {
				gaveUp[e.Message.String()] = true
			}
		}
		if len(events) > 0 {
			continue
		}
		counts, err := box.AllCounts(ctx)
		if err != nil {
			return err
		}
		actors := sup.Declared()
		stuck := blocked(actors, box.Actors(), sup.Status())
		done, idle := drained(actors, counts, stuck)
		if done {
			return drainVerdict(gaveUp, idle)
		}
		if fired {
			fired = false
			if now := drainWaits(actors, counts, stuck, box.NextDue()); len(now) > 0 && !slices.Equal(now, told) {
				told = now
				tellDrain(log, now)
			}
		} else if quiet == nil {
			quiet = time.After(drainQuiet)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		case <-more:
		case <-quiet:
			fired, quiet = true, nil
		}
	}
}

// isLoss says that a message has become DEAD or PARKED.
func isLoss(e mailbox.Event) bool {
	switch e.Kind {
	case protocol.EventDead, protocol.EventParked, protocol.EventCancelled:
		return e.Message != 0
	}
	return false
}

// drained says whether nothing of the declared actors is left to do, and which
// blocked actors have something left all the same.
func drained(actors []config.Actor, counts map[string]mailbox.Counts, blocked map[string]string) (done bool, idle []string) {
	for i := range actors {
		name := actors[i].Name
		c := counts[name]
		switch why := blocked[name]; {
		case c.Claimed > 0:
			return false, nil // it ends, one way or another
		case c.New == 0:
		case why == "":
			return false, nil
		default:
			idle = append(idle, fmt.Sprintf("%s is %s and has %s left", name, why, plural(c.New, "message")))
		}
	}
	return true, idle
}

// blocked are the actors that work on nothing until a person acts, with the state
// that they are in; an actor that waits for a blocked one is blocked too.
func blocked(actors []config.Actor, onRecord []mailbox.Actor, running []supervisor.ActorStatus) map[string]string {
	out := map[string]string{}
	for _, a := range onRecord {
		switch {
		case a.Stopped:
			out[a.Name] = string(protocol.SlotStopped)
		case a.Paused:
			out[a.Name] = string(protocol.ActorPaused)
		}
	}
	waiting := map[string]bool{}
	for _, a := range running {
		resting := !slices.ContainsFunc(a.Slots, func(s supervisor.SlotStatus) bool {
			return s.State != protocol.SlotFailed && s.State != protocol.SlotExited && s.State != protocol.SlotStuck
		})
		if resting && len(a.Slots) > 0 && out[a.Actor] == "" {
			out[a.Actor] = string(a.State)
		}
		waiting[a.Actor] = slices.ContainsFunc(a.Slots, func(s supervisor.SlotStatus) bool { return s.State == protocol.SlotWaiting })
	}
	for found := true; found; { // once for each link of the longest chain
		found = false
		for i := range actors {
			a := &actors[i]
			for _, first := range a.After {
				if out[a.Name] == "" && waiting[a.Name] && out[first] != "" && out[first] != string(protocol.ActorPaused) {
					out[a.Name], found = "waiting for "+first, true
				}
			}
		}
	}
	return out
}

// drainQuiet is how long after a change it is told what a drain waits for: what is taken
// or due by then is not worth a word.
const drainQuiet = 3 * time.Second

// A drainWait is what a drain waits for of one actor.
type drainWait struct {
	actor    string
	messages int64
	due      time.Time // of the first; zero: it is due, or that is not known
	why      string    // it is not taken
}

// drainWaits is what a drain waits for, or nothing while any message of the actors is
// worked on.
func drainWaits(actors []config.Actor, counts map[string]mailbox.Counts, blocked map[string]string, due map[string]time.Time) (out []drainWait) {
	for i := range actors {
		name := actors[i].Name
		switch c := counts[name]; {
		case c.Claimed > 0:
			return nil
		case c.New > 0:
			w := drainWait{actor: name, messages: c.New, due: due[name], why: blocked[name]}
			if w.why == "" && w.due.IsZero() {
				w.why = "not taken yet"
			}
			out = append(out, w)
		}
	}
	return out
}

func tellDrain(log *slog.Logger, waits []drainWait) {
	for _, w := range waits {
		attrs := []any{"actor", w.actor, "messages", w.messages}
		if !w.due.IsZero() {
			attrs = append(attrs, "next_due", w.due)
		}
		if w.why != "" {
			attrs = append(attrs, "why", w.why)
		}
		log.Info("not drained yet", attrs...)
	}
}

// tellUndrained says what is left where a signal ends a drain: the exit status is 0, as
// that of every run that is stopped, and does not tell.
func tellUndrained(ctx context.Context, box *mailbox.Box, actors []config.Actor, log *slog.Logger) {
	counts, err := box.AllCounts(ctx)
	if err != nil {
		log.Warn("stopped before all was drained, perhaps: what is left could not be counted", "err", err)
		return
	}
	if left, messages := undrained(actors, counts); messages > 0 {
		log.Warn("stopped before all was drained", "messages", messages, "left", left)
	}
}

// undrained is how many messages of the actors have not ended, of each and of all.
func undrained(actors []config.Actor, counts map[string]mailbox.Counts) (each string, all int64) {
	var left []string
	for i := range actors {
		c := counts[actors[i].Name]
		if n := c.New + c.Claimed; n > 0 {
			left = append(left, fmt.Sprintf("%s: %d", actors[i].Name, n))
			all += n
		}
	}
	return strings.Join(left, ", "), all
}

func drainVerdict(gaveUp map[string]bool, idle []string) error {
	switch {
	case len(idle) > 0:
		return refusal.New(refusal.Failed, "not drained: nobody works on what is left", strings.Join(idle, "; "),
			"start or resume them, or look at `sovereign inbox`")
	case len(gaveUp) > 0:
		return refusal.New(refusal.Failed, "drained, but "+plural(int64(len(gaveUp)), "message")+" became DEAD or PARKED", "",
			"see `sovereign inbox --state DEAD` and `sovereign inbox --state PARKED`")
	}
	return errDrained
}
