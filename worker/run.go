package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

// A Handler works on one message. What it returns settles the attempt.
type Handler func(ctx context.Context, m *Message) error

// An Option changes how Run works.
type Option func(*loop)

// Concurrency is how many messages are worked on at one time; 1 unless given,
// at most 256.
func Concurrency(n int) Option { return func(l *loop) { l.concurrency = min(max(n, 1), 256) } }

// Logger has what happens to attempts logged; without it nothing is.
func Logger(log *slog.Logger) Option { return func(l *loop) { l.log = log } }

// DrainOnSIGTERM says whether a SIGTERM, which the supervisor sends to stop a
// worker, only has it drain. Unless given it is true for Run, and false for
// Client.Run. With false the program sees to the signal itself, or dies of it with
// the messages at hand.
func DrainOnSIGTERM(on bool) Option { return func(l *loop) { l.drainOnTerm = on } }

// Run opens the connection to the supervisor and works until it ends, or a SIGTERM
// has it drain; see Client.Run.
func Run(ctx context.Context, handle Handler, options ...Option) error {
	c, err := Open()
	if err != nil {
		return err
	}
	defer c.Close()
	return c.Run(ctx, handle, append([]Option{DrainOnSIGTERM(true)}, options...)...)
}

// Run tells the supervisor that the worker is ready, then claims messages and
// has handle work on them.
//
// It returns nil once it has drained: after the supervisor asked for it, ctx ended
// or a SIGTERM came (DrainOnSIGTERM), no more is claimed and the handlers that
// run finish. It returns the
// refusal when the lease of this process is lost (actor_lease_lost) or the
// supervisor is gone (unavailable): then the handlers' contexts end too, and the
// process should exit.
//
// The handlers' contexts carry ctx's values, not its end: a worker that is told to
// stop has the actor's stop timeout to finish.
func (c *Client) Run(ctx context.Context, handle Handler, options ...Option) error {
	l := &loop{client: c, handle: handle, concurrency: 1, log: slog.New(slog.DiscardHandler), running: map[claim]*Message{}}
	for _, o := range options {
		o(l)
	}
	return l.run(ctx)
}

// claimWait is how long one claim waits. It is not the time between attempts to
// find work: a message is handed out as soon as there is one.
const claimWait = 5 * time.Minute

type claim struct {
	id    string
	token protocol.Token
}

// A loop is one Run.
type loop struct {
	client      *Client
	handle      Handler
	concurrency int
	log         *slog.Logger
	drainOnTerm bool

	work   context.Context // of the handlers; ends when nothing counts any more
	lose   context.CancelCauseFunc
	claims context.Context // of the claims; ends when draining, too
	drain  context.CancelCauseFunc

	mu      sync.Mutex // guards running
	running map[claim]*Message
}

var errDraining = errors.New("the worker drains")

func (l *loop) run(ctx context.Context) error {
	if l.drainOnTerm {
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, syscall.SIGTERM)
		defer stop()
	}
	l.work, l.lose = context.WithCancelCause(context.WithoutCancel(ctx))
	defer l.lose(nil)
	l.claims, l.drain = context.WithCancelCause(l.work)
	defer context.AfterFunc(ctx, func() { l.drain(errDraining) })()
	drained, leave := l.client.watch(l.notified)
	defer leave()
	if drained {
		l.drain(errDraining)
	}
	watching := make(chan struct{})
	var watcher sync.WaitGroup
	watcher.Go(func() {
		select {
		case <-l.client.Done():
			l.lose(gone(nil))
		case <-watching:
		}
	})
	defer watcher.Wait()
	defer close(watching)

	if err := l.client.Ready(l.claims); err != nil && l.claims.Err() == nil {
		return err
	}
	var all sync.WaitGroup
	for range l.concurrency {
		all.Go(l.serve)
	}
	all.Wait()
	if l.work.Err() != nil {
		return context.Cause(l.work)
	}
	return nil
}

// notified acts on what the supervisor tells. It does not block.
func (l *loop) notified(line protocol.Line) {
	switch line.Method {
	case protocol.NotifyDrain:
		l.drain(errDraining)
	case protocol.NotifyLeaseLost:
		var p protocol.LeaseLost
		_ = json.Unmarshal(line.Params, &p)
		l.lose(refusal.New(refusal.ActorLeaseLost, "the lease of this process is lost", p.Reason,
			"stop: nothing that this process does counts any more"))
	case protocol.NotifyClaimLost:
		var p protocol.ClaimLost
		if json.Unmarshal(line.Params, &p) != nil {
			return
		}
		l.mu.Lock()
		m := l.running[claim{p.ID, p.Token}]
		l.mu.Unlock()
		if m != nil {
			m.lose(refusal.New(refusal.LeaseExpired, "the claim of message "+p.ID+" is lost", p.Reason,
				"stop: what this attempt does counts no more"))
		}
	}
}

// serve works on one message after the other until the worker drains. The
// completion of one claims the next.
func (l *loop) serve() {
	var next []protocol.Delivery
	var sent time.Time
	for {
		if len(next) == 0 {
			// Where work has ended, claims, which is derived from it, may end a moment
			// later than the handler's context does.
			if l.claims.Err() != nil || l.work.Err() != nil {
				return
			}
			var err error
			next, sent, err = l.client.Claim(l.claims, protocol.ClaimParams{Wait: protocol.Duration(claimWait), Max: 1})
			if err != nil {
				if !l.outlives(err) {
					return
				}
				continue
			}
		}
		got := next
		next = nil
		for i, d := range got {
			m := newMessage(l.work, l.client, d, sent)
			if l.claims.Err() != nil {
				l.release(m)
				continue
			}
			more, at := l.attempt(m, i == len(got)-1)
			if more != nil {
				next, sent = more, at
			}
		}
	}
}

// outlives reports whether work goes on after a claim was refused with err. It
// waits a second, so that a refusal that lasts is not asked for all the time.
func (l *loop) outlives(err error) bool {
	if l.claims.Err() != nil {
		return false
	}
	if refusal.Has(err, refusal.ActorLeaseLost) || refusal.Has(err, refusal.LeaseExpired) || refusal.Has(err, refusal.BadRequest) {
		l.lose(err)
		return false
	}
	l.log.Warn("claim refused", "err", err)
	return wait(l.claims, time.Second)
}

// release gives back what was claimed while draining began.
func (l *loop) release(m *Message) {
	defer m.lose(nil)
	if _, err := l.client.Release(m.ctx, m.ID, m.Token); err != nil {
		l.log.Warn("message not released", "msg", m.ID, "err", err)
	}
}

// attempt has one message handled and settles it. Where claimNext is set, the
// completion claims the next ones.
func (l *loop) attempt(m *Message, claimNext bool) (next []protocol.Delivery, sent time.Time) {
	defer m.lose(nil)
	// A claim that waited long was granted later than it was sent. To renew it is
	// what tells how long it really has.
	if m.late {
		if err := m.renew(m.ctx, nil); err != nil {
			l.log.Warn("claim not begun", "msg", m.ID, "err", err)
			return nil, time.Time{}
		}
	}
	key := claim{m.ID, m.Token}
	l.mu.Lock()
	l.running[key] = m
	l.mu.Unlock()
	var keeper sync.WaitGroup
	keeper.Go(m.keep)
	err := l.call(m)
	if m.ctx.Err() != nil {
		l.letGo(m)
	} else {
		next, sent = l.settle(m, err, claimNext)
	}
	m.lose(nil)
	keeper.Wait()
	l.mu.Lock()
	delete(l.running, key)
	l.mu.Unlock()
	return next, sent
}

// letGo tells the supervisor that the work on a lost claim has ended: one that a
// person cancelled is over then, and the process need not be killed for it. What
// the supervisor itself has refused needs no word.
func (l *loop) letGo(m *Message) {
	cause := context.Cause(m.ctx)
	l.log.Warn("claim lost", "msg", m.ID, "attempt", m.Attempt, "cause", cause)
	if _, refused := errors.AsType[*protocol.Error](cause); refused || l.work.Err() != nil {
		return
	}
	_, _ = l.client.Release(l.work, m.ID, m.Token) // most often it is refused: the claim is lost
}

// call is the handler with its panics made errors.
func (l *loop) call(m *Message) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return l.handle(m.ctx, m)
}

// settle ends the attempt as the handler's error says.
func (l *loop) settle(m *Message, err error, claimNext bool) (next []protocol.Delivery, sent time.Time) {
	var refused error
	var retry *retryError
	var dead *deadError
	switch {
	case err == nil:
		p := protocol.CompleteParams{ID: m.ID, Token: m.Token, Result: m.Result}
		if claimNext && l.claims.Err() == nil {
			p.Next = &protocol.Next{Max: 1}
		}
		var out protocol.CompleteResult
		out, sent, refused = l.client.Complete(m.ctx, p)
		next = out.Messages
		if refused != nil && !fenced(refused) && m.ctx.Err() == nil {
			// It stays claimed otherwise, with nobody at work on it.
			l.log.Error("completion refused", "msg", m.ID, "attempt", m.Attempt, "err", refused)
			_, refused = l.client.Fail(m.ctx, protocol.FailParams{ID: m.ID, Token: m.Token, Reason: "its completion was refused: " + refused.Error()})
		}
	case errors.Is(err, Release):
		_, refused = l.client.Release(m.ctx, m.ID, m.Token)
	case errors.As(err, &dead):
		_, refused = l.client.Fail(m.ctx, protocol.FailParams{ID: m.ID, Token: m.Token, Reason: err.Error(), Dead: true})
	case errors.As(err, &retry):
		delay := protocol.Duration(retry.delay)
		_, refused = l.client.Fail(m.ctx, protocol.FailParams{ID: m.ID, Token: m.Token, Reason: err.Error(), Delay: &delay})
	default:
		_, refused = l.client.Fail(m.ctx, protocol.FailParams{ID: m.ID, Token: m.Token, Reason: err.Error()})
	}
	if refused != nil {
		l.log.Warn("attempt not settled", "msg", m.ID, "attempt", m.Attempt, "err", refused)
	}
	return next, sent
}
