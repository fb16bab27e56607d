package supervisor

import "sync"

// A channel is the connection of one child, which its program uses before the supervisor
// has made it whole: what is to be said by then waits. The zero value is that of a child
// that has none.
type channel struct {
	mu     sync.Mutex
	served Channel        // mu guards it; nil = not yet, or there is none
	comes  bool           // mu guards it: it is being made
	unsaid []notification // mu guards it; until it is served
}

type notification struct {
	method string
	params any
}

// expect says that serve will be called.
func (c *channel) expect() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.comes = true
}

// serve has ch say what waits, and all that comes.
func (c *channel) serve(ch Channel) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.served, c.comes = ch, false
	for _, n := range c.unsaid {
		ch.Notify(n.method, n.params)
	}
	c.unsaid = nil
}

// get returns what is served, nil if nothing is.
func (c *channel) get() Channel {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.served
}

// notify says it, once it can be said. It does not block.
func (c *channel) notify(method string, params any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.served != nil:
		c.served.Notify(method, params)
	case c.comes:
		c.unsaid = append(c.unsaid, notification{method, params})
	}
}
