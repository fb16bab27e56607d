package main

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/metrics"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/server"
	"github.com/sovereign-run/sovereign/store/bolt"
)

// An openedStore is a store that this command has opened itself, for as long as
// it takes.
type openedStore struct {
	db      *bolt.DB
	box     *mailbox.Box
	handler *server.Control
}

// openStore takes the lock of the store in the folder data and opens it.
func openStore(ctx context.Context, data string, how access) (*openedStore, error) {
	db, err := bolt.Open(data, bolt.Options{ReadOnly: how == toRead})
	if err != nil {
		return nil, err
	}
	box, err := mailbox.Open(ctx, db, leasesOf(db), mailbox.Options{})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if how == toWrite {
		// What a restore that was interrupted has not parked yet.
		if _, err := box.ParkRestored(ctx, db.Epoch()); err != nil {
			return nil, errors.Join(err, box.Close(), db.Close())
		}
	}
	handler := server.NewControl(box, nil, thisBuild().Version, data).WithStorage(storage{DB: db, reading: how == toRead})
	handler.WithMetrics(metrics.New(metrics.Source{Version: thisBuild().Version, Status: statusFor(handler), Store: storeFor(db)}, false))
	return &openedStore{db: db, box: box, handler: handler}, nil
}

// leasesOf are the leases of a store, on its own lease clock.
func leasesOf(db *bolt.DB) *fence.Leases { return fence.New(db, clockOf(db)) }

// clockOf is the store's clock, as the lease clock is made of it.
func clockOf(db *bolt.DB) func() fence.Instant {
	return func() fence.Instant { return fence.Instant(db.Now()) }
}

// call makes one request of the handler that a supervisor's socket has too. The
// result takes the same way through JSON.
func (o *openedStore) call(ctx context.Context, method string, params, result any) error {
	raw, err := json.Marshal(params)
	if err != nil {
		return err
	}
	answer, err := o.handler.Handle(ctx, method, raw)
	if err != nil || result == nil {
		return err
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, result)
}

func (o *openedStore) Close() error { return errors.Join(o.box.Close(), o.db.Close()) }

// openAlone opens the store for a supervisor or for recovery. Where a supervisor
// answers on the socket it is refused at once, store_locked; a command that holds
// the lock for a moment is waited for.
func openAlone(ctx context.Context, data string, options bolt.Options) (*bolt.DB, error) {
	return alone(ctx, data, func() (*bolt.DB, error) { return bolt.Open(data, options) })
}

// alone calls open, which takes the lock of the store, as openAlone does.
func alone[T any](ctx context.Context, data string, open func() (T, error)) (opened T, err error) {
	deadline := time.Now().Add(connectFor)
	pause := firstPause
	for {
		opened, err = open()
		if err == nil || !refusal.Has(err, refusal.StoreLocked) {
			return opened, err
		}
		if answers(ctx, data, deadline) {
			return opened, refusal.New(refusal.StoreLocked, "another supervisor runs on "+data, refusal.Of(err).Why,
				"see `sovereign status`; stop it with `sovereign shutdown`, or give another --data").Because(err)
		}
		if time.Now().Add(pause).After(deadline) {
			return opened, err
		}
		if err := wait(ctx, pause); err != nil {
			return opened, err
		}
		pause = min(2*pause, longestWait)
	}
}

// answers reports whether a supervisor answers on the socket of the store in data. One
// that has accepted and says nothing until the deadline counts as one: it may be
// stopped. A connection that ends without a word does not: a child that a
// supervisor was just forking when it was killed keeps its sockets, as it keeps its
// lock, for a moment.
func answers(ctx context.Context, data string, deadline time.Time) bool {
	conn, err := server.Dial(data)
	if err != nil {
		return false
	}
	c := newClient(conn)
	defer c.Close()
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	return !endedSilently(c.call(ctx, protocol.MethodHello, protocol.Empty{}, nil))
}
