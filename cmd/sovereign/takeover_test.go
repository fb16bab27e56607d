package main

import (
	"io"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/interrupt"
	"github.com/sovereign-run/sovereign/refusal"
)

// breaks is a program that says it could take over, and then cannot: it writes a wrong file.
// Where there is a file named told, it is told to reload before that.
func breaks() {
	if early != nil {
		if _, err := os.Stat("told"); err == nil {
			if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
				panic(err)
			}
			early.caught <- <-early.caught // it has come, and lies there
		}
		if err := os.WriteFile("actors.yaml", []byte("version: 1\nactors: {d: {comand: none}}\n"), 0o600); err != nil {
			panic(err)
		}
	}
	main()
}

// A reload that a service is asked for is handed to the program that takes over until it
// has been carried out, and not after; one that comes while an earlier one is carried out
// is another one, and one that finds the store closed is still to be carried out. Have hand
// leave out reloading, or reloaded clear it whatever has come or went wrong, and this fails.
func TestSignals_HandOnTheReloadThatIsNotDone(t *testing.T) {
	i := catchSignals(true)
	defer i.stop()
	handed := func() []syscall.Signal {
		t.Helper()
		if _, err := i.hand(); err != nil {
			t.Fatal(err)
		}
		i.mu.Lock()
		defer i.mu.Unlock()
		if err := i.relay.Close(); err != nil {
			t.Fatal(err)
		}
		i.relay = nil
		numbers, err := io.ReadAll(i.kept)
		if err != nil {
			t.Fatal(err)
		}
		var out []syscall.Signal
		for _, n := range numbers {
			out = append(out, syscall.Signal(n))
		}
		return out
	}
	is := func(when string, want ...syscall.Signal) {
		t.Helper()
		if got := handed(); !slices.Equal(got, want) {
			t.Errorf("%s: handed on are %v, want %v", when, got, want)
		}
	}
	is("at first")
	i.heed(syscall.SIGHUP)
	i.heed(syscall.SIGHUP)
	is("once asked for", syscall.SIGHUP)
	<-i.reload
	is("while it is carried out", syscall.SIGHUP)
	i.reloaded(refusal.New(refusal.Unavailable, "use the store", "it is closed", ""))
	is("once the store is closed", syscall.SIGHUP)
	i.heed(syscall.SIGHUP)
	i.reloaded(nil)
	is("with another one", syscall.SIGHUP)
	<-i.reload
	i.reloaded(nil)
	is("once both are")
}

// handedSignal is the descriptor of a pipe with a signal in it, as hand leaves it for the
// next program; take closes it.
func handedSignal(t *testing.T, signal syscall.Signal) uintptr {
	t.Helper()
	given, give, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer given.Close()
	defer give.Close()
	if _, err := give.Write([]byte{byte(signal)}); err != nil {
		t.Fatal(err)
	}
	fd, err := syscall.Dup(int(given.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	return uintptr(fd)
}

// What is handed on is heeded there as here: SIGHUP is no stop to a service. Have take
// note all as stops, and this fails.
func TestSignals_TakeTheReload(t *testing.T) {
	given := handedSignal(t, syscall.SIGHUP)
	i := catchSignals(true)
	defer i.stop()
	i.take(given)
	select {
	case <-i.reload:
	case s := <-i.got:
		t.Errorf("%v stops it", s)
	case <-time.After(time.Minute):
		t.Error("it is lost")
	}
}

// C3: a stop that comes while the program that takes over has not begun to serve, and then
// cannot, is passed back with those that it was given itself; nothing of it is lost. Have
// giveBack hear nothing that serve has not, or hand only what has come since, and this fails.
func TestTakeover_PassesBackWhatItHeardBeforeServing(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "@manager")
	early = interruptionsOf(interrupt.Catch())
	t.Cleanup(func() { early = nil })
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	early.caught <- <-early.caught // it has come, and lies there

	over := &takeover{handoff: &handoff{Signals: handedSignal(t, syscall.SIGINT)}}
	over.hear()
	defer over.signals.stop()
	if _, err := over.signals.hand(); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 8)
	n, err := over.signals.kept.Read(got)
	if err != nil {
		t.Fatal(err)
	}
	if want := string([]byte{byte(syscall.SIGTERM), byte(syscall.SIGINT)}); string(got[:n]) != want {
		t.Errorf("the signals %v are passed back, want %v", got[:n], []byte(want))
	}
	if over.service.socket != "@manager" {
		t.Errorf("the service manager's socket is lost: %q", over.service.socket)
	}
}
