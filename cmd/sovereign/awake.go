package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store/bolt"
)

// A supervisor that is stopped (SIGSTOP) still has its socket connected to, by the
// kernel, and answers nothing: that is said after a while, and whoever only looks
// gives up in the end.
const (
	silentFor = 5 * time.Second
	lookFor   = 30 * time.Second
)

// A patience is how a supervisor that does not answer is waited for. The zero value
// waits without a word and without end.
type patience struct {
	notices io.Writer     // nil: nothing is said
	most    time.Duration // 0: for ever
}

// awake returns once the supervisor of the store in data answers on c. It is
// refused, unavailable, when that takes too long.
func (p patience) awake(ctx context.Context, c *client, data string) error {
	if p.notices == nil {
		return nil
	}
	told := make(chan struct{})
	notice := time.AfterFunc(silentFor, func() {
		defer close(told)
		fmt.Fprintf(p.notices, "%s does not answer; waiting for it\n", supervisorOf(data))
	})
	defer func() {
		if !notice.Stop() {
			<-told
		}
	}()
	if p.most > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, p.most, refusal.New(refusal.Unavailable,
			supervisorOf(data)+" does not answer", "it holds the store, and has said nothing for "+short(p.most),
			"see whether it is stopped: `ps -o pid,stat,args`; `kill -CONT` has it go on").Later())
		defer cancel()
	}
	return c.call(ctx, protocol.MethodHello, protocol.Empty{}, nil)
}

// supervisorOf names the supervisor of a store by the pid that it has left in its
// lock.
func supervisorOf(data string) string {
	if pid := bolt.Holder(data); pid > 0 {
		return fmt.Sprintf("the supervisor (pid %d)", pid)
	}
	return "the supervisor"
}

// noSupervisor is what a person is told whose message waits for a supervisor.
const noSupervisor = "no supervisor runs: it waits until one does (sovereign run actors.yaml)"
