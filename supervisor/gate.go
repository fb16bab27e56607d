package supervisor

import "sync"

// A gate tells which actors are ready, for those that come after them.
type gate struct {
	mu     sync.Mutex
	actors map[string]*standing // mu guards it and what it points to
}

// A standing is an actor as its dependants see it.
type standing struct {
	slots int           // how many it has
	ready int           // how many of them are ready
	open  chan struct{} // closed while all are ready
}

// add makes an actor known; none of its slots is ready. One without slots is
// ready.
func (g *gate) add(actor string, slots int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.actors == nil {
		g.actors = map[string]*standing{}
	}
	st := &standing{slots: slots, open: make(chan struct{})}
	if slots == 0 {
		close(st.open)
	}
	g.actors[actor] = st
}

// turn says that one slot of actor has become ready, or is ready no more.
func (g *gate) turn(actor string, ready bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	st := g.actors[actor]
	if ready {
		if st.ready++; st.ready == st.slots {
			close(st.open)
		}
		return
	}
	if st.ready == st.slots {
		st.open = make(chan struct{})
	}
	st.ready--
}

// closed returns the first of actors that is not ready, with a channel that is
// closed when it is; "" where all are.
func (g *gate) closed(actors []string) (actor string, opens <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, name := range actors {
		if st := g.actors[name]; st != nil && st.ready < st.slots {
			return name, st.open
		}
	}
	return "", nil
}
