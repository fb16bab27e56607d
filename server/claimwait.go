package server

import "context"

// A waitOfClaim is what a claim that finds nothing has of its wait. Its zero value
// has not begun.
type waitOfClaim struct {
	ctx  context.Context
	ends []func()
}

// begin has the wait hold up nothing, and end with the connection's waits or when the
// worker is to claim no more.
func (x *waitOfClaim) begin(w *workers, in doing, draining context.Context) (context.Context, error) {
	in.call.slim()
	done, err := in.call.waiting()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(in.wait)
	x.ctx = ctx
	for _, drain := range []context.Context{draining, w.drained} {
		if drain != nil {
			stop := context.AfterFunc(drain, cancel)
			x.ends = append(x.ends, func() { stop() })
		}
	}
	x.ends = append(x.ends, cancel, w.processes.Claiming(in.holder.Process), done)
	return ctx, nil
}

// over reports whether the wait has ended, rather than begun or come to something.
func (x *waitOfClaim) over() bool { return x.ctx != nil && x.ctx.Err() != nil }

func (x *waitOfClaim) end() {
	for _, end := range x.ends {
		end()
	}
}
