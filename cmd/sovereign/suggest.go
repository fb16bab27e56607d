package main

import (
	"context"
	"slices"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

// didYouMean is err; where it says that name is no actor and another actor's name
// is like it, it asks for that one.
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
	best := closest(name, known)
	if best == "" || slices.Contains(known, name) {
		return err
	}
	r := *refusal.Of(err)
	r.Next = "did you mean " + best + "? see `sovereign status` for the actors"
	return &r
}
