package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/interrupt"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/server"
	"github.com/sovereign-run/sovereign/supervisor/process"
)

// A takeover is this program in the place of another one, or the question whether it
// could be.
type takeover struct {
	*handoff
	thread  *process.Thread // that children are made on; nil = it is only a question
	file    *os.File        // that the handoff lies in
	signals *interruptions  // that were caught before there was no way back; nil = serve has not heard them
	service *notifier       // goes with signals
	done    atomic.Bool     // there is no way back
}

// The thread that a program begins on is the one that has executed it, and to which the
// children are bound. It is lent to whoever makes further ones.
func init() {
	if interrupt.Early != nil {
		runtime.LockOSThread()
		early = interruptionsOf(interrupt.Early)
	}
}

// takeoverGiven is what was passed on to this program; nil = nothing was.
func takeoverGiven() *takeover {
	text := os.Getenv(interrupt.Handoff)
	if text == "" {
		return nil
	}
	_ = os.Unsetenv(interrupt.Handoff)
	fd, err := strconv.Atoi(text)
	t := &takeover{thread: process.NewThread()}
	if err == nil {
		t.file = os.NewFile(uintptr(fd), "handoff")
		t.handoff, err = readHandoff(t.file)
	}
	if err != nil {
		report(err, false, os.Stdout, os.Stderr)
		os.Exit(exitFailed)
	}
	return t
}

// main runs the program. It lends its thread, and does not return.
func (t *takeover) main() {
	go func() {
		status, err := t.run()
		if !t.done.Load() {
			report(err, false, os.Stdout, os.Stderr)
			report(t.giveBack(err), false, os.Stdout, os.Stderr)
			status = exitFailed
		}
		os.Exit(status)
	}()
	t.thread.Serve()
}

// run carries out the command line that the program before was started with. err is why
// it ended, where that was before everything had been taken over.
func (t *takeover) run() (status int, err error) {
	defer func() {
		if p := recover(); p != nil {
			if t.done.Load() {
				panic(p)
			}
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	ctx := context.WithValue(context.Background(), takeoverKey{}, t)
	root := newRoot()
	root.SetArgs(os.Args[1:])
	err = root.ExecuteContext(ctx)
	if err == nil && !t.done.Load() {
		err = errors.New("the command line is not that of a supervisor")
	}
	if t.done.Load() {
		report(err, wantsJSON(os.Args[1:]), os.Stdout, os.Stderr)
	}
	return statusOf(err), err
}

// giveBack has the program that was there before go on, with everything as it was. It
// returns only where that is not possible: then the processes end with this one, and the
// next start recovers.
func (t *takeover) giveBack(cause error) error {
	if t.Failure != nil {
		return nil // it has been given back already
	}
	failure := errorOf(cause)
	t.Failure = &failure
	if t.signals == nil {
		t.hear()
	}
	err := t.check()
	if err == nil {
		t.Signals, err = t.signals.hand()
	}
	if err == nil {
		err = t.write(t.file)
	}
	if err == nil {
		keep := append(t.fds(), t.file.Fd())
		err = t.thread.Exec(selfFile(t.Old), append([]string{t.Program}, os.Args[1:]...), t.service.environ(t.file.Fd()), keep)
	}
	return fmt.Errorf("go back to version %s: %w", t.Version, err)
}

// hear has what was told to this program before serve began be heard: by the service
// manager in its environment, by signals that init has caught, and by those that the
// program before had passed on.
func (t *takeover) hear() {
	t.service = takeNotifier()
	t.signals = catchSignals(t.service.listens() || !hasTerminal())
	t.signals.take(t.Signals)
}

// selfFile is a path to an open file of this program.
func selfFile(fd uintptr) string { return "/proc/self/fd/" + strconv.Itoa(int(fd)) }

type takeoverKey struct{}

// takeoverOf is what this run takes over; nil = nothing.
func takeoverOf(ctx context.Context) *takeover {
	t, _ := ctx.Value(takeoverKey{}).(*takeover)
	return t
}

// sound is what can be said without touching anything.
func (t *takeover) sound(file *config.File) error {
	if file.Data != t.Data {
		return &config.Problems{List: []config.Problem{{Path: file.Path,
			Message: fmt.Sprintf("data is now %s, allowed: %s, on which this supervisor runs; stop it to move the store", file.Data, t.Data)}}}
	}
	return t.check()
}

// lock is the store's lock, for a store that is opened now. The one that was passed on
// stays beside it.
func (t *takeover) lock() (*os.File, error) { return duplicate(t.Lock, "lock") }

// listeners go on listening.
func (t *takeover) listeners() (control, worker *server.Listener, err error) {
	for _, held := range t.Sockets {
		l, err := server.AdoptListener(t.Data, held)
		if err != nil {
			return nil, nil, err
		}
		if held.Control {
			control = l
		} else {
			worker = l
		}
	}
	if control == nil || worker == nil {
		return nil, nil, errors.New("a socket was not passed on")
	}
	return control, worker, nil
}

// metrics goes on listening.
func (t *takeover) metrics() (net.Listener, error) {
	f, err := duplicate(*t.Metrics, "metrics")
	if err != nil {
		return nil, err
	}
	defer f.Close() // FileListener makes its own
	l, err := net.FileListener(f)
	if local, ok := l.(*net.UnixListener); ok {
		local.SetUnlinkOnClose(true)
	}
	return l, err
}

// commit says that everything is taken over: what was kept for the way back is closed.
func (t *takeover) commit() {
	t.done.Store(true)
	fds := []uintptr{t.Old, t.Lock}
	for _, s := range t.Sockets {
		fds = append(fds, s.FDs()...)
	}
	if t.Metrics != nil {
		fds = append(fds, *t.Metrics)
	}
	for _, fd := range fds {
		_ = syscall.Close(int(fd))
	}
	_ = t.file.Close()
}

// newTakeoverCheck is how a supervisor asks another program whether it could take over.
func newTakeoverCheck() *cobra.Command {
	return &cobra.Command{
		Use:    "takeover-check",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			answer := readiness{Version: thisBuild().Version}
			if err := checkTakeover(cmd.Context(), cmd.InOrStdin()); err != nil {
				e := errorOf(err)
				if problems, ok := errors.AsType[*config.Problems](err); ok {
					e.Message, e.Why = "actors.yaml is not valid for version "+answer.Version, problems.Error()
				}
				answer.Error = &e
			}
			return json.NewEncoder(cmd.OutOrStdout()).Encode(answer)
		},
	}
}

// A readiness is the answer of takeover-check, in one line.
type readiness struct {
	Version string     `json:"sovereign_version"`
	Error   *errorJSON `json:"error,omitempty"`
}

func checkTakeover(ctx context.Context, asked io.Reader) error {
	h, err := readHandoff(asked)
	if err != nil {
		return err
	}
	if err := h.check(); err != nil {
		return err
	}
	checked := &takeover{handoff: h}
	root := newRoot()
	root.SetArgs(h.Args)
	root.SetOut(io.Discard)
	root.SetErr(io.Discard)
	if err := root.ExecuteContext(context.WithValue(ctx, takeoverKey{}, checked)); err != nil {
		return err
	}
	if !checked.done.Load() {
		return refusal.New(refusal.BadRequest, "the command line is not that of a supervisor", "", "")
	}
	return nil
}
