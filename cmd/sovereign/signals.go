package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"

	"github.com/sovereign-run/sovereign/interrupt"
	"github.com/sovereign-run/sovereign/refusal"
)

// errStopped says that a signal asked for the end: a clean one.
var errStopped = errors.New("stopped by a signal")

// interruptions are the signals that stop a run. SIGHUP, the end of the terminal,
// is one of them, unless it was ignored when the program started (nohup). To a service
// it says that its file has changed.
type interruptions struct {
	caught   chan os.Signal // those that stop, as they come
	got      chan os.Signal // the same, once they are noted
	broken   chan os.Signal // SIGPIPE, which nobody reads: a closed terminal ends no supervisor
	reload   chan os.Signal // SIGHUP, of a service; a second one before the first is taken says no more
	service  bool           // SIGHUP says that the file has changed; set before anything is heeded
	released chan struct{}
	once     sync.Once
	noting   sync.WaitGroup
	hurrying sync.WaitGroup

	mu        sync.Mutex
	came      []byte   // mu guards; numbers of those that have come, reload apart
	reloading bool     // mu guards; a reload was asked for and has not been carried out
	relay     *os.File // mu guards; gets the number of each that comes, for the next program; nil = there is none
	kept      *os.File // mu guards; the other end of relay
}

// early are signals that are caught before anything can act on them: by a program that was
// put in another one's place as soon as it begins, by a run while it opens its store. nil =
// none are.
var early *interruptions

// interruptionsOf are signals that are caught; nothing is done about them yet.
func interruptionsOf(c *interrupt.Caught) *interruptions {
	return &interruptions{caught: c.Stops, broken: c.Broken, got: make(chan os.Signal, 8), reload: make(chan os.Signal, 1), released: make(chan struct{})}
}

// catchSignals catches the signals, those of early among them, and notes them.
func catchSignals(service bool) *interruptions {
	i := early
	if i == nil {
		i = interruptionsOf(interrupt.Catch())
	}
	i.service = service
	for len(i.caught) > 0 {
		i.heed(<-i.caught) // at once: hand may be next
	}
	i.noting.Go(func() {
		defer close(i.got)
		for s := range i.caught {
			i.heed(s)
		}
	})
	return i
}

// heed passes on a signal that has come.
func (i *interruptions) heed(s os.Signal) {
	number, ok := s.(syscall.Signal)
	if !ok {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.relay != nil {
		_, _ = i.relay.Write([]byte{byte(number)})
	}
	to := i.got
	if number == syscall.SIGHUP && i.service {
		i.reloading, to = true, i.reload
	} else {
		i.came = append(i.came, byte(number))
	}
	select {
	case to <- s:
	default: // so many that one more says nothing new
	}
}

// reloaded says that what was taken of reload has been carried out, or refused with err.
// Where the store is closed already, because another program takes this one's place, it has
// not: that one will.
func (i *interruptions) reloaded(err error) {
	if refusal.Has(err, refusal.Unavailable) {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.reloading = len(i.reload) > 0 // another one has come since
}

// hand is the descriptor of a pipe that holds the signals that have come, a reload only
// where it has not been carried out, and gets those that come from now on, for the program
// that takes this one's place: until that is executed they would be lost with this one. One
// that comes while that begins, before package interrupt was initialized, ends it at once:
// Go's runtime does not leave these signals blocked. Then the children end with it, as by a
// SIGKILL, and the next start recovers.
func (i *interruptions) hand() (fd uintptr, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.kept, i.relay, err = os.Pipe(); err != nil {
		return 0, fmt.Errorf("pass signals on: %w", err)
	}
	came := i.came
	if i.reloading {
		came = append(slices.Clone(came), byte(syscall.SIGHUP))
	}
	if _, err := i.relay.Write(came); err != nil {
		return 0, fmt.Errorf("pass signals on: %w", err)
	}
	return i.kept.Fd(), nil
}

// take heeds the signals that the program before this one has handed over; 0 = none.
// The other end of the pipe has gone with that program.
func (i *interruptions) take(fd uintptr) {
	if fd == 0 {
		return
	}
	f := os.NewFile(fd, "signals")
	defer f.Close()
	numbers, _ := io.ReadAll(f) // what could not be read is lost: nothing else knows of it
	for _, n := range numbers {
		i.heed(syscall.Signal(n))
	}
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
		fmt.Fprintf(w, "%s\n", stopNotice(s))
		i.hurrying.Go(func() { i.further(w, hurry) })
		return errStopped
	case <-i.released:
		// Something else stops the run: a signal now hurries it.
		i.hurrying.Go(func() { i.further(w, hurry) })
		return nil
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
	signal.Stop(i.caught)
	signal.Stop(i.broken)
	close(i.caught)
	i.noting.Wait()
	i.hurrying.Wait()
}
