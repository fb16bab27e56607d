package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/fsnotify/fsnotify"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/server"
)

// awaitEnd waits until the message has ended, over however many supervisors that
// takes. idle is called when it begins to wait for one.
func awaitEnd(ctx context.Context, at place, id string, notices io.Writer, idle func()) (detail protocol.MessageDetail, err error) {
	err = overSupervisors(ctx, at, idle, func() (done, running bool, err error) {
		detail, running, err = lookAtEnd(ctx, at, id, notices)
		if running && refusal.Has(err, refusal.Unavailable) {
			err = nil // it stops, and another one may come
		}
		return err == nil && detail.State.Ended(), running, err
	})
	return detail, err
}

// overSupervisors asks until it is done, over however many supervisors that takes: while
// none runs it looks at what is on record, and then waits for one, holding no lock. idle is
// called when it begins to wait for one.
func overSupervisors(ctx context.Context, at place, idle func(), ask func() (done, running bool, err error)) error {
	for {
		// Watching begins before asking: a supervisor that starts in between is
		// not missed.
		arrivals, err := watchSocket(at.data)
		if err != nil {
			return err
		}
		done, running, err := ask()
		if err == nil && !done && !running {
			idle()
			err = arrivals.next(ctx)
		}
		if err = errors.Join(err, arrivals.Close()); err != nil || done {
			return err
		}
	}
}

// lookAtEnd asks once: a supervisor answers at the message's end, a stopped store
// at once.
func lookAtEnd(ctx context.Context, at place, id string, notices io.Writer) (detail protocol.MessageDetail, running bool, err error) {
	conn, err := connectPatiently(ctx, at, toRead, patience{notices: notices})
	if err != nil {
		return detail, false, err
	}
	defer conn.Close()
	if conn.client == nil {
		err = conn.call(ctx, protocol.MethodInboxShow, protocol.InboxShowParams{ID: id}, &detail)
		return detail, false, err
	}
	err = conn.call(ctx, protocol.MethodAwait, protocol.AwaitParams{ID: id}, &detail)
	if refusal.Has(err, refusal.Unavailable) {
		// It is stopping. Whether another one comes is seen by connecting again,
		// once this one has let go.
		err = errors.Join(err, conn.client.hungUp(ctx))
	}
	return detail, true, err
}

// arrivals tells when a supervisor begins to listen.
type arrivals struct{ watcher *fsnotify.Watcher }

func watchSocket(data string) (arrivals, error) {
	w, err := fsnotify.NewWatcher()
	if err == nil {
		err = w.Add(data)
	}
	if err != nil {
		return arrivals{}, fmt.Errorf("watch %s: %w", data, err)
	}
	return arrivals{w}, nil
}

// next returns when control.sock has appeared, or ctx has ended.
func (a arrivals) next(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case e := <-a.watcher.Events:
			if filepath.Base(e.Name) == server.ControlSocket && e.Has(fsnotify.Create) {
				return nil
			}
		case err := <-a.watcher.Errors:
			return fmt.Errorf("wait for a supervisor: %w", err)
		}
	}
}

func (a arrivals) Close() error { return a.watcher.Close() }
