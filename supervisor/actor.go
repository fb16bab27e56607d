package supervisor

import (
	"slices"
	"sync"
	"syscall"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/supervisor/process"
)

// An actor is one entry of actors.yaml with its slots. It holds no state of its
// own: what it does is the sum of its slots.
type actor struct {
	spec       *config.Actor
	slots      []*slot
	stopSignal syscall.Signal
	env        []string // what its children inherit, and what is declared for them
}

func newActor(sup *Supervisor, spec *config.Actor, base []string) *actor {
	a := &actor{spec: spec, stopSignal: signalNumber(spec.Stop.Signal), env: base}
	if len(spec.Env) > 0 {
		a.env = overlay(base, sorted(declared(spec.Env))...)
	}
	if a.stopSignal == 0 {
		a.stopSignal = syscall.SIGTERM
	}
	sup.gate.add(spec.Name, spec.Replicas)
	for n := range spec.Replicas {
		a.slots = append(a.slots, newSlot(sup, a, n+1))
	}
	return a
}

// An account is the user that a child runs as.
type account struct {
	credential *process.Credential // nil = the supervisor's own
	env        []string            // of the child, without what is its own
}

// account looks the actor's user up anew each time, so that a restart sees what
// has changed.
func (a *actor) account() (account, error) {
	switch {
	case a.spec.User == "" && a.spec.Group == "":
		return account{env: a.env}, nil
	case a.spec.User == "":
		c, err := process.LookupGroup(a.spec.Group)
		if err != nil {
			return account{}, err
		}
		return account{credential: &c, env: a.env}, nil
	}
	c, env, err := process.LookupUser(a.spec.User, a.spec.Group)
	if err != nil {
		return account{}, err
	}
	return account{credential: &c, env: overlay(overlay(a.env, env...), declared(a.spec.Env)...)}, nil
}

func sorted(list []string) []string {
	slices.Sort(list)
	return list
}

// actor returns the actor of a name, or a refusal unknown_actor.
func (sup *Supervisor) actor(name string) (*actor, error) {
	for _, a := range sup.actors {
		if a.spec.Name == name {
			return a, nil
		}
	}
	return nil, refusal.New(refusal.UnknownActor, "there is no actor "+name, "this supervisor's actors.yaml does not declare it",
		"see `sovereign status`")
}

// each runs f for every slot of every actor, at the same time, and returns when all
// have.
func each(actors []*actor, f func(*slot)) {
	var wg sync.WaitGroup
	for _, a := range actors {
		for _, s := range a.slots {
			wg.Go(func() { f(s) })
		}
	}
	wg.Wait()
}
