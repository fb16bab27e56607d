package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

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
// returns ctx's cause.
func untilDrained(ctx context.Context, box *mailbox.Box, sup *supervisor.Supervisor, since uint64) error {
	select {
	case <-sup.Recovered():
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	seen := since
	gaveUp := map[string]bool{}
	for {
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
		done, idle := drained(actors, counts, blocked(actors, box.Actors(), sup.Status()))
		if done {
			return drainVerdict(gaveUp, idle)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		case <-more:
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
