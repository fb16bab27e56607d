package supervisor

import (
	"os"
	"sync/atomic"
	"syscall"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/supervisor/process"
)

// A definition is an actor as one reading of actors.yaml has it, with what follows
// from that. It never changes, but for what was logged: a reload makes another one. A
// slot lives by its latest; a process that lives is what its own says.
type definition struct {
	spec       *config.Actor
	process    int // equal in two definitions of one actor where their processes are the same
	stopSignal syscall.Signal
	env        []string // what its children inherit, and what is declared for them

	toldPath atomic.Bool // where its command is looked for in vain was logged
}

// define makes the definition of spec; base is what children inherit.
func define(spec *config.Actor, process int, base []string) *definition {
	d := &definition{spec: spec, process: process, stopSignal: signalNumber(spec.Stop.Signal), env: base}
	if len(spec.Env) > 0 {
		d.env = overlay(base, sorted(declared(spec.Env))...)
	}
	if d.stopSignal == 0 {
		d.stopSignal = syscall.SIGTERM
	}
	return d
}

// An account is the user that a child runs as.
type account struct {
	credential *process.Credential // nil = the supervisor's own
	env        []string            // of the child, without what is its own
}

// uid is the number of that user.
func (a account) uid() int {
	if a.credential != nil {
		return int(a.credential.UID)
	}
	return os.Geteuid()
}

// account looks the actor's user up anew each time, so that a restart sees what
// has changed.
func (d *definition) account() (account, error) {
	switch {
	case d.spec.User == "" && d.spec.Group == "":
		return account{env: d.env}, nil
	case d.spec.User == "":
		c, err := process.LookupGroup(d.spec.Group)
		if err != nil {
			return account{}, err
		}
		return account{credential: &c, env: d.env}, nil
	}
	c, env, err := process.LookupUser(d.spec.User, d.spec.Group)
	if err != nil {
		return account{}, err
	}
	return account{credential: &c, env: overlay(overlay(d.env, env...), declared(d.spec.Env)...)}, nil
}
