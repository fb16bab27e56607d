package server

import (
	"context"

	"github.com/sovereign-run/sovereign/mailbox"
)

// A claiming is a claim from when it is asked for until its answer has been written.
type claiming struct {
	workers  *workers
	in       doing
	draining context.Context // of the process
	claimed  []mailbox.Delivery

	wait context.Context // nil = it has not waited
	ends []func()
}

// begin has the wait of a claim that finds nothing hold up nothing, and end with the
// connection's waits or when the worker is to claim no more.
func (x *claiming) begin() (context.Context, error) {
	x.in.call.slim()
	done, err := x.in.call.waiting()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(x.in.wait)
	x.wait = ctx
	for _, drain := range []context.Context{x.draining, x.workers.drained} {
		if drain != nil {
			stop := context.AfterFunc(drain, cancel)
			x.ends = append(x.ends, func() { stop() })
		}
	}
	x.ends = append(x.ends, cancel, x.workers.processes.Claiming(x.in.holder.Process), done)
	return ctx, nil
}

// over reports whether the claim has waited and the context of that wait has ended.
func (x *claiming) over() bool { return x.wait != nil && x.wait.Err() != nil }

// end ends the wait, if there is one.
func (x *claiming) end() {
	for _, end := range x.ends {
		end()
	}
	x.ends = nil
}

// told gives back what the answer has not brought.
func (x *claiming) told(sent bool) { x.workers.giveBack(x.in, x.claimed, sent) }
