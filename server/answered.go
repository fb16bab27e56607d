package server

import (
	"context"
	"maps"
	"sync"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

// Answered is a kind of answer: what was asked, and what became of it.
type Answered struct {
	Method  string           // as in docs/protocol.md; "unknown" for every name that is not there
	Refused refusal.Category // "" = it was done
}

// tally counts answers since New. A settle counts once for each of its items, which
// are judged alone.
type tally struct {
	mu     sync.Mutex
	counts map[Answered]uint64 // mu guards it
}

func (t *tally) add(a Answered) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = map[Answered]uint64{}
	}
	t.counts[a]++
}

// Answered returns how many answers of each kind were given since New, over both
// sockets and all channels.
func (s *Server) Answered() map[Answered]uint64 {
	s.tally.mu.Lock()
	defer s.tally.mu.Unlock()
	return maps.Clone(s.tally.counts)
}

// counting counts the answers of a handler.
type counting struct {
	handler
	tally *tally
}

func (c counting) handle(run, wait context.Context, in *call) answer {
	method := in.req.Method
	a := c.handler.handle(run, wait, in)
	if a.again != nil {
		return a // it has no answer yet
	}
	if settled, ok := a.result.(protocol.SettleResult); ok {
		for _, item := range settled.Results {
			c.tally.add(Answered{method, category(item.Error)})
		}
		return a
	}
	if a.err != nil {
		method = known(method)
	}
	c.tally.add(Answered{method, category(a.err)})
	return a
}

// category is that of an error on the wire; none is "".
func category(err *protocol.Error) refusal.Category {
	if err == nil {
		return ""
	}
	return err.Refusal().Category
}

// known keeps the names that peers make up out of what is counted.
func known(method string) string {
	_, ofWorkers := verbs[method]
	_, ofPeople := requests[method]
	if !ofWorkers && !ofPeople {
		return "unknown"
	}
	return method
}
