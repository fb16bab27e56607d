package main

import (
	"context"
	"errors"
	"time"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/store/bolt"
)

// inProcess is the mailbox as a library: over the store, without a socket.
type inProcess struct {
	db     *bolt.DB
	box    *mailbox.Box
	leases *fence.Leases
}

const recipient = "work"

// openStore opens the mailbox in dir with one recipient that may have any number
// of messages.
func openStore(ctx context.Context, dir string) (*inProcess, error) {
	db, err := bolt.Open(dir, bolt.Options{})
	if err != nil {
		return nil, err
	}
	p := &inProcess{db: db, leases: fence.New(db, func() fence.Instant { return fence.Instant(db.Now()) })}
	p.box, err = mailbox.Open(ctx, db, p.leases, mailbox.Options{})
	if err == nil {
		err = p.box.SetActors(ctx, []mailbox.Actor{{Name: recipient, Mailbox: true, ClaimTTL: time.Minute, Auto: true,
			Timeout: 10 * time.Minute, Retry: mailbox.Retry{MaxAttempts: 5, Factor: 2}}})
	}
	if err == nil {
		err = p.box.Load(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return p, nil
}

func (p *inProcess) pids() []int { return nil }
func (p *inProcess) stop() error { return errors.Join(p.box.Close(), p.db.Close()) }

func (p *inProcess) client(i int) (client, error) {
	ctx, cancel := context.WithCancel(context.Background())
	c := &inProcessClient{box: p.box, ctx: ctx, cancel: cancel}
	if i < 0 {
		return c, nil
	}
	lease, err := p.box.Begin(ctx, fence.Slot{Actor: recipient, Number: i + 1}, fence.NewProcess(), 10*time.Minute,
		mailbox.Event{Kind: "started"})
	if err != nil {
		return nil, err
	}
	c.holder = lease.Holder()
	return c, nil
}

type inProcessClient struct {
	box    *mailbox.Box
	holder fence.Holder // of a worker
	ctx    context.Context
	cancel context.CancelFunc
}

func (c *inProcessClient) close() { c.cancel() }

func (c *inProcessClient) send(body []byte) error {
	_, err := c.box.Send(c.ctx, mailbox.Outgoing{To: recipient, Body: body})
	return err
}

func (c *inProcessClient) claim() (job, error) {
	j, _, err := c.take(-1)
	return j, err
}

func (c *inProcessClient) take(wait time.Duration) (j job, ok bool, err error) {
	got, err := c.box.Claim(c.ctx, c.holder, mailbox.ClaimRequest{Wait: wait})
	if err != nil || len(got) == 0 {
		return job{}, false, err
	}
	return job{id: got[0].ID.String(), token: uint64(got[0].Token)}, true, nil
}

func (c *inProcessClient) complete(j job) error {
	id, err := mailbox.ParseID(j.id)
	if err != nil {
		return err
	}
	_, err = c.box.Settle(c.ctx, c.holder, mailbox.Ref{ID: id, Token: fence.Token(j.token)},
		mailbox.Outcome{Verdict: mailbox.Complete, Category: mailbox.CategoryCompleted, ExitCode: -1, ByWorker: true}, nil)
	return err
}

func (c *inProcessClient) next(j job) (job, bool, error) {
	if err := c.complete(j); err != nil {
		return job{}, false, err
	}
	return c.take(0)
}
