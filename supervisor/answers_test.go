package supervisor

import (
	"context"
	"strings"
	"testing"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/fence"
)

// A slot that takes nothing is named, one that has ended is well, and before anything
// runs all is.
func TestAnswers(t *testing.T) {
	slotOf := func(n int) *slot {
		return &slot{name: fence.Slot{Actor: "a", Number: n}, mail: make(chan func()), done: make(chan struct{})}
	}
	live, ended, hangs := slotOf(1), slotOf(2), slotOf(3)
	close(ended.done)
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		for {
			select {
			case f := <-live.mail:
				f()
			case <-stop:
				return
			}
		}
	}()
	sup := &Supervisor{running: make(chan struct{})}
	fleet := []*actor{{def: define(&config.Actor{Name: "a"}, 1, nil), slots: []*slot{live, ended, hangs}}}
	sup.fleet.Store(&fleet)
	late, cancel := context.WithCancel(t.Context())
	cancel()
	if err := sup.Answers(late); err != nil {
		t.Errorf("before anything runs: %v", err)
	}
	close(sup.running)
	ctx, cancel := context.WithCancel(t.Context())
	asked := make(chan error, 1)
	go func() { asked <- sup.Answers(ctx) }()
	go func() { (<-hangs.mail)() }()
	if err := <-asked; err != nil {
		t.Errorf("all take a call: %v", err)
	}
	go func() { asked <- sup.Answers(ctx) }()
	cancel()
	if err := <-asked; err == nil || !strings.Contains(err.Error(), "a/") {
		t.Errorf("one hangs: %v", err)
	}
}
