package supervisor

import "sync"

// A gate tells which actors are ready, for those that come after them.
type gate struct {
	mu     sync.Mutex
	actors map[string]*standing // mu guards it and what it points to
}

// A standing is an actor as its dependants see it.
type standing struct {
	slots int           // how many it is to have
	ready int           // how many of its slots are ready
	open  chan struct{} // closed while all are ready
	isUp  bool          // whether it is closed
}

// set says how many slots an actor is to have. Of one that was not known none is
// ready; one without slots is ready.
func (g *gate) set(actor string, slots int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.actors == nil {
		g.actors = map[string]*standing{}
	}
	st := g.actors[actor]
	if st == nil {
		st = &standing{open: make(chan struct{})}
		g.actors[actor] = st
	}
	st.slots = slots
	st.judge()
}

// forget makes an actor unknown: it is no longer declared, and none comes after it.
// Those that wait for it are woken.
func (g *gate) forget(actor string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if st := g.actors[actor]; st != nil {
		st.slots = 0
		st.judge()
		delete(g.actors, actor)
	}
}

// turn says that one slot of actor has become ready, or is ready no more.
func (g *gate) turn(actor string, ready bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	st := g.actors[actor]
	switch {
	case st == nil: // one of its last slots
		return
	case ready:
		st.ready++
	default:
		st.ready--
	}
	st.judge()
}

// judge opens or closes the gate.
func (st *standing) judge() {
	up := st.ready >= st.slots
	switch {
	case up && !st.isUp:
		close(st.open)
	case !up && st.isUp:
		st.open = make(chan struct{})
	}
	st.isUp = up
}

// closed returns the first of actors that is not ready, with a channel that is
// closed when it is; "" where all are.
func (g *gate) closed(actors []string) (actor string, opens <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, name := range actors {
		if st := g.actors[name]; st != nil && !st.isUp {
			return name, st.open
		}
	}
	return "", nil
}
