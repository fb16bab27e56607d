// Package guard is the fence of a resource outside: a service, a folder, a
// device that workers change and that cannot look into the mailbox.
//
// The mailbox itself compares a token with the current record, and refuses all
// but the equal one. A resource outside knows no current record. It can only
// remember the greatest token that it has seen, refuse smaller ones, and accept
// that one and greater ones (docs/contract.md, P2.7). That is enough to keep a
// worker that lost its claim from writing over its successor, from the moment
// that the successor has written once. It cannot keep it from writing before:
// for that, ask the supervisor right before the step (`sovereign fence`, the
// worker method check).
//
// A Guard lives in the process that owns the resource. For a database, the same
// rule is one condition in the UPDATE; docs/operating.md shows it.
package guard

import (
	"fmt"
	"sync"
)

// A StaleError says that a token was refused because a greater one has been
// seen. It is final: the one refused stops, and never tries again with it.
type StaleError struct {
	Resource string
	Given    uint64
	Seen     uint64
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("fencing token %d for %q is stale: %d has been seen", e.Given, e.Resource, e.Seen)
}

// A Memory keeps the greatest token of each resource. Save returns once the
// token is as durable as the resource is: a guard that forgets on a restart
// lets one stale write through.
type Memory interface {
	// Load returns the token last saved for resource, 0 if there is none.
	Load(resource string) (uint64, error)
	Save(resource string, token uint64) error
}

// A Guard admits changes to resources by fencing token. The zero value is not
// usable; see New.
type Guard struct {
	memory Memory

	mu    sync.Mutex // guards locks
	locks map[string]*entry
}

// An entry is one resource in use.
type entry struct {
	mu    sync.Mutex
	users int // guarded by Guard.mu
}

// New returns a guard that remembers in memory; nil forgets when the process
// ends.
func New(memory Memory) *Guard {
	if memory == nil {
		memory = &volatile{tokens: map[string]uint64{}}
	}
	return &Guard{memory: memory, locks: map[string]*entry{}}
}

// Do runs change if token is at least the greatest that resource has seen. A
// smaller one, and 0, is refused with a *StaleError and change is not run.
//
// A greater token is saved before change runs: should change fail, an older
// worker stays shut out all the same. Changes of one resource run one at a
// time, so that none can slip in between another's check and its effect;
// changes of different resources run side by side. Do returns change's error.
func (g *Guard) Do(resource string, token uint64, change func() error) error {
	defer g.lock(resource)()
	seen, err := g.memory.Load(resource)
	if err != nil {
		return fmt.Errorf("load the token of %q: %w", resource, err)
	}
	if token == 0 || token < seen {
		return &StaleError{Resource: resource, Given: token, Seen: seen}
	}
	if token > seen {
		if err := g.memory.Save(resource, token); err != nil {
			return fmt.Errorf("save the token of %q: %w", resource, err)
		}
	}
	return change()
}

func (g *Guard) lock(resource string) (unlock func()) {
	g.mu.Lock()
	e := g.locks[resource]
	if e == nil {
		e = &entry{}
		g.locks[resource] = e
	}
	e.users++
	g.mu.Unlock()
	e.mu.Lock()
	return func() {
		e.mu.Unlock()
		g.mu.Lock()
		defer g.mu.Unlock()
		if e.users--; e.users == 0 {
			delete(g.locks, resource)
		}
	}
}

// volatile is the Memory of a guard that was given none.
type volatile struct {
	mu     sync.Mutex
	tokens map[string]uint64
}

func (v *volatile) Load(resource string) (uint64, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.tokens[resource], nil
}

func (v *volatile) Save(resource string, token uint64) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.tokens[resource] = token
	return nil
}
