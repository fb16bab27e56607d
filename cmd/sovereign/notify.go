package main

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// notifyLimit is how long a state may take to be taken.
const notifyLimit = time.Second

// A notifier tells the service manager that started this program how it is
// doing: one datagram to the socket that NOTIFY_SOCKET names (sd_notify(3)). The
// zero notifier tells nobody. Its methods may be called from any goroutine; the
// error of each says that the manager did not take it, and there is nothing to do
// about that but to say so.
type notifier struct {
	socket   string
	watchdog time.Duration // how often, at least, the manager wants to hear that we live; 0 = not at all

	mu     sync.Mutex
	ready  bool   // mu guards it: it was told that all is up
	status string // mu guards it: what it was told last

	telling  sync.Mutex // held while a state is sent, so that none overtakes STOPPING
	stopping bool       // telling guards it: it was told that this program ends
}

// takeNotifier takes what the service manager has said out of the environment, so
// that no child reports in the name of the supervisor (L6).
func takeNotifier() *notifier {
	n := &notifier{socket: os.Getenv("NOTIFY_SOCKET"),
		watchdog: watchdogFor(os.Getenv("WATCHDOG_USEC"), os.Getenv("WATCHDOG_PID"), os.Getpid())}
	for _, name := range []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} {
		_ = os.Unsetenv(name)
	}
	if n.socket == "" {
		n.watchdog = 0
	}
	return n
}

// watchdogFor is sd_watchdog_enabled(3): it holds for one process, where that is
// named.
func watchdogFor(usec, pid string, self int) time.Duration {
	if pid != "" && pid != strconv.Itoa(self) {
		return 0
	}
	n, err := strconv.ParseInt(usec, 10, 64)
	if err != nil || n <= 0 || n > int64((1<<63-1)/time.Microsecond) {
		return 0
	}
	return time.Duration(n) * time.Microsecond
}

// listens reports whether there is somebody to tell.
func (n *notifier) listens() bool { return n.socket != "" }

// Ready tells that all is up, and in one line how it stands.
func (n *notifier) Ready(status string) error {
	n.mu.Lock()
	n.ready, n.status = true, status
	n.mu.Unlock()
	return n.tell("READY=1", "STATUS="+status)
}

// Status tells in one line how it stands, if that is news.
func (n *notifier) Status(status string) error {
	n.mu.Lock()
	known := status == n.status
	n.status = status
	n.mu.Unlock()
	if known {
		return nil
	}
	return n.tell("STATUS=" + status)
}

// Reloading tells that the configuration is being read again, until done is called.
// Before all is up there is nothing to tell: a start takes as long as it takes.
func (n *notifier) Reloading() (done func() error, err error) {
	n.mu.Lock()
	ready := n.ready
	n.mu.Unlock()
	if !ready {
		return func() error { return nil }, nil
	}
	states := []string{"RELOADING=1"}
	if now := monotonic(); now > 0 {
		states = append(states, "MONOTONIC_USEC="+strconv.FormatInt(now.Microseconds(), 10))
	}
	return func() error { return n.tell("READY=1") }, n.tell(states...)
}

// isReady reports whether it was told that all is up.
func (n *notifier) isReady() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ready
}

// goesOn tells what a program before this one has told already: that all is up.
func (n *notifier) goesOn() error {
	n.mu.Lock()
	n.ready = true
	n.mu.Unlock()
	return n.tell("READY=1")
}

// Stopping tells that it ends, and that this may take as long as most.
func (n *notifier) Stopping(most time.Duration) error {
	return n.tell("STOPPING=1", "STATUS=stopping", extend(most))
}

// Extend tells that what is under way, the start or the stop, may take as long as
// most from now, whatever the unit says.
func (n *notifier) Extend(most time.Duration) error { return n.tell(extend(most)) }

// Watchdog tells that it lives.
func (n *notifier) Watchdog() error { return n.tell("WATCHDOG=1") }

func extend(most time.Duration) string {
	return "EXTEND_TIMEOUT_USEC=" + strconv.FormatInt(most.Microseconds(), 10)
}

// tell sends states such as "READY=1". A path that begins with @ is a name in
// Linux' abstract space, as package net has it too. Once it was told that this program
// ends, all that is told is that it lives, and for how long: a start that is over in that
// moment takes nothing back.
func (n *notifier) tell(states ...string) error {
	if n.socket == "" {
		return nil
	}
	n.telling.Lock()
	defer n.telling.Unlock()
	switch kind, _, _ := strings.Cut(states[0], "="); kind {
	case "STOPPING":
		n.stopping = true
	case "READY", "RELOADING", "STATUS":
		if n.stopping {
			return nil
		}
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: n.socket, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("tell the service manager: %w", err)
	}
	defer conn.Close()
	// A manager that does not read must not keep the supervisor from its work.
	if err := conn.SetWriteDeadline(time.Now().Add(notifyLimit)); err != nil {
		return fmt.Errorf("tell the service manager: %w", err)
	}
	if _, err := conn.Write([]byte(strings.Join(states, "\n"))); err != nil {
		return fmt.Errorf("tell the service manager: %w", err)
	}
	return nil
}
