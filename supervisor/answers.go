package supervisor

import (
	"context"
	"fmt"
)

// Answers returns nil once every slot has taken a call, so that none of them hangs;
// it changes nothing. Its error names the first slot that had not when ctx ended.
// Before Run has begun to start what is wanted there is nobody to ask.
func (sup *Supervisor) Answers(ctx context.Context) error {
	if !sup.isRunning() {
		return nil
	}
	for _, a := range sup.actors() {
		for _, s := range a.all() {
			select {
			case s.mail <- func() {}:
			case <-s.done:
			case <-ctx.Done():
				return fmt.Errorf("slot %s/%d does not answer: %w", s.name.Actor, s.name.Number, context.Cause(ctx))
			}
		}
	}
	return nil
}
