package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

// mustKnow refuses the name of an actor that never was, unknown_actor, with the one that
// is closest; and a slot, if it is not 0, that the actor does not have, bad_request. How
// many it has only a supervisor knows. It returns what the status says.
func (s *shared) mustKnow(ctx context.Context, actor string, slot int) (status protocol.Status, err error) {
	err = s.read(ctx, protocol.MethodStatus, protocol.StatusParams{Actor: actor}, &status)
	if err != nil || slot == 0 {
		return status, s.didYouMean(ctx, err, actor)
	}
	for _, a := range status.Actors {
		has := func(one protocol.SlotStatus) bool { return one.Slot == slot }
		if len(a.Slots) > 0 && !slices.ContainsFunc(a.Slots, has) {
			return status, usage(fmt.Sprintf("%s has no slot %d", actor, slot), "it has "+plural(int64(len(a.Slots)), "slot")+", from 1",
				"see `sovereign status "+actor+"`")
		}
	}
	return status, nil
}

// didYouMean is err; where it says that name is no actor and another actor's name
// is like it, it asks for that one, and of the id of a message it says how to see it.
func (s *shared) didYouMean(ctx context.Context, err error, name string) error {
	if !refusal.Has(err, refusal.UnknownActor) {
		return err
	}
	var status protocol.Status
	if s.read(ctx, protocol.MethodStatus, protocol.StatusParams{}, &status) != nil {
		return err // what is known already is worth more
	}
	known := make([]string, len(status.Actors))
	for i, a := range status.Actors {
		known[i] = a.Actor
	}
	r := *refusal.Of(err)
	best := config.Closest(name, known)
	_, noID := mailbox.ParseID(name)
	switch {
	case slices.Contains(known, name):
		return err
	case noID == nil:
		r.Next = "for the message of that id: sovereign inbox show " + name
	case best == "":
		return err
	default:
		r.Next = "did you mean " + best + "? see `sovereign status` for the actors"
	}
	return &r
}
