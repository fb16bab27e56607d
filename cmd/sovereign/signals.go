package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
)

// errStopped says that a signal asked for the end: a clean one.
var errStopped = errors.New("stopped by a signal")

// interruptions are the signals that stop a run. SIGHUP, the end of the terminal,
// is one of them, unless it was ignored when the program started (nohup). To a service
// it says that its file has changed.
type interruptions struct {
	got      chan os.Signal
	broken   chan os.Signal // SIGPIPE, which nobody reads: a closed terminal ends no supervisor
	reload   chan os.Signal // SIGHUP, of a service; a second one before the first is taken says no more
	released chan struct{}
	once     sync.Once
	taken    atomic.Int32 // the first signal, once it has been taken
	hurrying sync.WaitGroup
}

func catchSignals(service bool) *interruptions {
	i := &interruptions{got: make(chan os.Signal, 8), broken: make(chan os.Signal, 1), reload: make(chan os.Signal, 1), released: make(chan struct{})}
	stops := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	switch {
	case signal.Ignored(syscall.SIGHUP):
	case service:
		signal.Notify(i.reload, syscall.SIGHUP)
	default:
		stops = append(stops, syscall.SIGHUP)
	}
	signal.Notify(i.got, stops...)
	signal.Notify(i.broken, syscall.SIGPIPE)
	return i
}

// hasTerminal says whether the program has a terminal whose end would be told by SIGHUP.
func hasTerminal() bool {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	_ = tty.Close()
	return true
}

// first waits for the first signal, says what a second one does, and returns
// errStopped; from then on each further one, SIGHUP apart, calls hurry. It returns nil when
// released before.
func (i *interruptions) first(w io.Writer, hurry func()) error {
	select {
	case s := <-i.got:
		if number, ok := s.(syscall.Signal); ok {
			i.taken.Store(int32(number))
		}
		fmt.Fprintf(w, "%s\n", stopNotice(s))
		i.hurrying.Go(func() { i.further(w, hurry) })
		return errStopped
	case <-i.released:
		// Something else stops the run: a signal now hurries it.
		i.hurrying.Go(func() { i.further(w, hurry) })
		return nil
	}
}

// seen is the number of the first signal; 0 = none has come.
func (i *interruptions) seen() int { return int(i.taken.Load()) }

// again is the signal that the program before this one has seen.
func (i *interruptions) again(number int) {
	if number != 0 {
		i.got <- syscall.Signal(number)
	}
}

func stopNotice(s os.Signal) string {
	if s == syscall.SIGINT {
		return "\nstopping; press Ctrl-C again to kill everything at once"
	}
	return "stopping; a second signal kills everything at once"
}

func (i *interruptions) further(w io.Writer, hurry func()) {
	for s := range i.got {
		if s == syscall.SIGHUP {
			// The end of one terminal is told twice, by the kernel and by the
			// shell: it is no wish to hurry.
			continue
		}
		fmt.Fprintf(w, "%v: killing everything\n", s)
		hurry()
	}
}

// release lets first return.
func (i *interruptions) release() { i.once.Do(func() { close(i.released) }) }

// stop ends the watch; signals have their default effect again.
func (i *interruptions) stop() {
	signal.Stop(i.got)
	signal.Stop(i.broken)
	signal.Stop(i.reload)
	close(i.got)
	i.hurrying.Wait()
}
