package main

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/server"
	"github.com/sovereign-run/sovereign/store/bolt"
)

// A connection is a store that can be asked: over the socket of its supervisor,
// or, where none runs, opened by this command itself, which then holds its lock
// until Close.
type connection struct {
	client *client      // nil: no supervisor runs
	opened *openedStore // nil: a supervisor runs
}

func (c *connection) call(ctx context.Context, method string, params, result any) error {
	if c.client != nil {
		return c.client.call(ctx, method, params, result)
	}
	return c.opened.call(ctx, method, params, result)
}

func (c *connection) Close() error {
	if c.client != nil {
		return c.client.Close()
	}
	return c.opened.Close()
}

// mustRun refuses what only makes sense while a supervisor runs.
func (c *connection) mustRun(purpose string) error {
	if c.client != nil {
		return nil
	}
	return refusal.New(refusal.Unavailable, purpose, "no supervisor runs, so nothing happens there", "start one with `sovereign run`").Later()
}

// The client tries the socket and the lock in turn for so long, waiting in
// between: at first briefly, for the one who holds the lock without a socket is
// another command that is about to end, or a supervisor about to listen.
const (
	connectFor  = 10 * time.Second
	firstPause  = 5 * time.Millisecond
	longestWait = 250 * time.Millisecond
)

// An access is what a command needs of a store that it opens itself.
type access bool

const (
	toRead  access = false // beside other readers; changes no file
	toWrite access = true
)

// connect finds whoever answers for the store that is meant.
//
// Where the environment holds an identity the store is never opened here: without
// a supervisor that is refused, actor_lease_lost. Without a store: unknown_actor.
// Where others keep the lock and no socket answers for 10 seconds: store_locked.
func (s *shared) connect(ctx context.Context, how access) (*connection, error) {
	wait := patience{notices: s.notices}
	if how == toRead {
		wait.most = lookFor
	}
	return connectPatiently(ctx, locate(s.data, os.Getenv), how, wait)
}

func connectTo(ctx context.Context, at place, how access) (*connection, error) {
	return connectPatiently(ctx, at, how, patience{})
}

func connectPatiently(ctx context.Context, at place, how access, silence patience) (*connection, error) {
	deadline := time.Now().Add(connectFor)
	pause := firstPause
	for {
		c, err := tryConnect(ctx, at, how)
		if err == nil && c.client != nil {
			if err = silence.awake(ctx, c.client, at.data); err != nil {
				err = errors.Join(err, c.Close())
				c = nil
			}
		}
		if err == nil || !refusal.Has(err, refusal.StoreLocked) && !endedSilently(err) || time.Now().Add(pause).After(deadline) {
			return c, err
		}
		if err := wait(ctx, pause); err != nil {
			return nil, err
		}
		pause = min(2*pause, longestWait)
	}
}

// wait waits for d and a random share of it, so that several do not keep step.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d + rand.N(d))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// tryConnect tries the socket once, then the lock once.
func tryConnect(ctx context.Context, at place, how access) (*connection, error) {
	conn, err := server.Dial(at.data)
	switch {
	case err == nil:
		return &connection{client: newClient(conn)}, nil
	case !refusal.Has(err, refusal.Unavailable):
		return nil, err
	case at.inherited.Process != "":
		return nil, orphaned(err)
	}
	if err := mustExist(at.data); err != nil {
		return nil, err
	}
	opened, err := openStore(ctx, at.data, how)
	if err != nil {
		return nil, err
	}
	return &connection{opened: opened}, nil
}

// orphaned is the refusal for a process that has outlived its supervisor.
func orphaned(cause error) error {
	return refusal.New(refusal.ActorLeaseLost, "this process belongs to a supervisor that does not run",
		"SOVEREIGN_PROCESS is set, and such a process may not open the store itself",
		"stop: nothing that this process does counts any more").Because(cause)
}

// mustExist refuses a folder that holds no store: commands make none.
func mustExist(data string) error {
	_, err := os.Stat(filepath.Join(data, bolt.DataFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Stat(filepath.Join(data, bolt.MarkFile)); err == nil {
			return nil // a database that is missing beside its mark: opening it says so
		}
		next := "`sovereign run actors.yaml` makes one; name another with --data"
		if inner := filepath.Join(data, ".sovereign"); holdsStore(inner) {
			next = "did you mean --data " + shellQuote(inner) + "?"
		}
		return refusal.New(refusal.UnknownActor, "there is no store in "+data, "no supervisor has run there yet",
			next)
	case errors.Is(err, fs.ErrPermission):
		return refusal.New(refusal.PermissionDenied, "look into the store in "+data, "the system refuses it to this user",
			"run the command as the user who owns it").Because(err)
	case errors.Is(err, syscall.ENOTDIR):
		return mayNot("look into the store in "+data, err)
	}
	return err
}

func holdsStore(data string) bool {
	_, err := os.Stat(filepath.Join(data, bolt.DataFile))
	return err == nil
}

// read makes one request that changes nothing; write one that does.
func (s *shared) read(ctx context.Context, method string, params, result any) error {
	return s.ask(ctx, toRead, method, params, result)
}

func (s *shared) write(ctx context.Context, method string, params, result any) error {
	return s.ask(ctx, toWrite, method, params, result)
}

func (s *shared) ask(ctx context.Context, how access, method string, params, result any) error {
	conn, err := s.connect(ctx, how)
	if err != nil {
		return err
	}
	return errors.Join(conn.call(ctx, method, params, result), conn.Close())
}
