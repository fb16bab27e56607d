package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// manager is the socket of a service manager, and a notifier that tells it.
func manager(t *testing.T, env ...string) (*notifier, func() string) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "n")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	t.Setenv("NOTIFY_SOCKET", socket)
	for i := 0; i < len(env); i += 2 {
		t.Setenv(env[i], env[i+1])
	}
	return takeNotifier(), func() string {
		t.Helper()
		b := make([]byte, 512)
		if err := conn.SetReadDeadline(time.Now().Add(testLimit)); err != nil {
			t.Fatal(err)
		}
		n, err := conn.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
}

// L6: what the manager has said to the supervisor is for nobody else.
func TestNotifier_TakesItsEnvironment(t *testing.T) {
	n, _ := manager(t, "WATCHDOG_USEC", "2000000", "WATCHDOG_PID", "")
	for _, name := range []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} {
		if value, set := os.LookupEnv(name); set {
			t.Errorf("%s is still %q", name, value)
		}
	}
	if n.watchdog != 2*time.Second {
		t.Errorf("watchdog %v", n.watchdog)
	}
}

func TestNotifier_WatchdogFor(t *testing.T) {
	for _, c := range []struct {
		usec, pid string
		want      time.Duration
	}{
		{"", "", 0}, {"1000", "", time.Millisecond}, {"1000", "7", time.Millisecond}, {"1000", "8", 0}, {"1000", "x", 0},
		{"0", "", 0}, {"-1", "7", 0}, {"x", "7", 0}, {"9223372036854775807", "7", 0}, {"99999999999999999999", "", 0},
	} {
		if got := watchdogFor(c.usec, c.pid, 7); got != c.want {
			t.Errorf("%q for %q: %v, want %v", c.usec, c.pid, got, c.want)
		}
	}
}

// What is told, in order: a reload only between READY and the end, a status only when
// it is news, and after STOPPING no READY. Send it all the same, and this fails.
func TestNotifier_States(t *testing.T) {
	n, heard := manager(t)
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	early, err := n.Reloading() // before all is up: nobody is told
	check(err)
	check(early())
	check(n.Extend(time.Minute))
	check(n.Ready("2 actors up"))
	check(n.Status("2 actors up")) // known
	check(n.Status("2 actors, 1 up; a failed"))
	done, err := n.Reloading()
	check(err)
	check(done())
	check(n.Stopping(3 * time.Second))
	check(done()) // what comes now takes nothing back
	check(n.Ready("3 actors up"))
	check(n.Status("3 actors up, at last"))
	check(n.Watchdog())
	want := []string{"EXTEND_TIMEOUT_USEC=60000000", "READY=1\nSTATUS=2 actors up", "STATUS=2 actors, 1 up; a failed",
		"RELOADING=1", "READY=1", "STOPPING=1\nSTATUS=stopping\nEXTEND_TIMEOUT_USEC=3000000", "WATCHDOG=1"}
	var got []string
	for range want {
		state, rest, _ := strings.Cut(heard(), "\nMONOTONIC_USEC=")
		if state == "RELOADING=1" && monotonic() > 0 && (rest == "" || strings.Trim(rest, "0123456789") != "") {
			t.Errorf("a reload began at %q", rest)
		}
		got = append(got, state)
	}
	if !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
	var nobody notifier
	check(nobody.Ready("x"))
	check(nobody.Watchdog())
}

// A sign of life is given for each look at which all is well, and for no other; no
// manager that asks for none is looked for.
func TestNotifier_WatchdogOnlyWhileHealthy(t *testing.T) {
	n, heard := manager(t, "WATCHDOG_USEC", "20000")
	ctx, cancel := context.WithCancel(t.Context())
	looks := 0
	done := make(chan error, 1)
	go func() {
		done <- keepWatchdog(ctx, n, func(context.Context) error {
			switch looks++; {
			case looks == 3 || looks == 4:
				return errors.New("it hangs")
			case looks == 6:
				cancel()
			}
			return nil
		}, slog.New(slog.DiscardHandler))
	}()
	<-done
	if err := n.Status("the end"); err != nil {
		t.Fatal(err)
	}
	var got []string
	for len(got) == 0 || got[len(got)-1] != "STATUS=the end" {
		got = append(got, heard())
	}
	if want := []string{"WATCHDOG=1", "WATCHDOG=1", "WATCHDOG=1", "STATUS=the end"}; !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}

	n.watchdog = 0
	cancelled, stop := context.WithCancel(t.Context())
	stop()
	_ = keepWatchdog(cancelled, n, func(context.Context) error {
		t.Error("looked at though nobody asks for it")
		return nil
	}, slog.New(slog.DiscardHandler))
}
