package supervisor_test

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/supervisor"
)

func init() {
	roles["sd"] = func() { must(sdSend(os.Getenv("NOTIFY_SOCKET"), os.Getenv("TEST_SAYS"))) }
	roles["sd garbage"] = sdGarbage
	roles["sd pulse"] = sdPulse
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// sdSend sends one datagram with files, as a program without systemd's library
// does.
func sdSend(socket, text string, files ...int) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var beside []byte
	if len(files) > 0 {
		beside = unix.UnixRights(files...)
	}
	return unix.Sendmsg(fd, []byte(text), beside, &unix.SockaddrUnix{Name: socket}, 0)
}

// sdBarrier returns once all that was sent before has been looked at: the receiver
// closes the descriptor of a BARRIER.
func sdBarrier(socket string) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	err = sdSend(socket, "BARRIER=1", int(w.Fd()))
	w.Close()
	if err != nil {
		return err
	}
	if err := r.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if n, err := r.Read(make([]byte, 1)); n != 0 || err == nil || os.IsTimeout(err) {
		return fmt.Errorf("the barrier was not answered: %d, %v", n, err)
	}
	return nil
}

// sdGarbage sends what no program should, and then that it is ready.
func sdGarbage() {
	socket := os.Getenv("NOTIFY_SOCKET")
	r, w, err := os.Pipe()
	must(err)
	many := make([]int, 253) // as many as one message may have
	for i := range many {
		many[i] = int(w.Fd())
	}
	for _, text := range []string{"", "\x00", "READY=1\x00", "READY", "=", "\n\n\n", strings.Repeat("x", 4097), "READY=1\n" + strings.Repeat("y", 10000),
		"MAINPID=1", "FDSTORE=1\nFDNAME=x", "WATCHDOG_USEC=1", "STATUS=\xff\xfe\x1b[2J", "STATUS=" + strings.Repeat("€", 1000)} {
		must(sdSend(socket, text))
		must(sdSend(socket, text, many...))
	}
	w.Close()
	must(sdBarrier(socket))
	must(r.SetReadDeadline(time.Now().Add(patience)))
	if _, err := r.Read(make([]byte, 1)); err == nil || os.IsTimeout(err) {
		must(fmt.Errorf("descriptors that were sent are kept: %v", err))
	}
	fmt.Fprintln(os.Stderr, "garbage sent")
	must(sdSend(socket, "READY=1"))
	select {}
}

// sdPulse shows signs of life, as often as it was told, until SIGUSR1.
func sdPulse() {
	usec, err := strconv.Atoi(os.Getenv("WATCHDOG_USEC"))
	must(err)
	socket := os.Getenv("NOTIFY_SOCKET")
	tell, err := os.OpenFile(os.Getenv("PULSES"), os.O_WRONLY, 0)
	must(err)
	enough := make(chan os.Signal, 1)
	signal.Notify(enough, syscall.SIGUSR1)
	must(sdSend(socket, "READY=1"))
	pulse := time.NewTicker(min(time.Duration(usec)*time.Microsecond/8, 50*time.Millisecond))
	for {
		select {
		case <-pulse.C:
			must(sdSend(socket, "WATCHDOG=1"))
			fmt.Fprintln(tell, os.Getpid())
		case <-enough:
			if says := os.Getenv("TEST_SAYS"); says != "" {
				must(sdSend(socket, says))
			}
			select {}
		}
	}
}

func notifies(timeout time.Duration) func(*config.Actor) {
	return func(a *config.Actor) { a.Ready = &config.Ready{Notify: true, Timeout: timeout} }
}

// role makes the actor this test binary in a role.
func asRole(role string, env ...string) func(*config.Actor) {
	return func(a *config.Actor) {
		a.Command = []string{os.Args[0]}
		a.Env = map[string]string{"TEST_ROLE": role, "GORACE": "atexit_sleep_ms=0"}
		for i := 0; i < len(env); i += 2 {
			a.Env[env[i]] = env[i+1]
		}
	}
}

// A daemon and a worker say by systemd's own program, from deep in their tree, that
// they are ready; what comes after them waits for that, and their status is shown.
// That systemd-notify returns 0 says that its barrier was answered.
func TestNotify_BySystemdNotify(t *testing.T) {
	if _, err := exec.LookPath("systemd-notify"); err != nil {
		t.Skip("this machine has no systemd-notify")
	}
	for _, user := range []string{"", "nobody"} {
		if user != "" && os.Geteuid() != 0 {
			continue
		}
		exits := newFifo(t)
		must(os.Chmod(exits.path, 0o666))
		for _, dir := range []string{filepath.Dir(exits.path), filepath.Dir(filepath.Dir(exits.path))} {
			must(os.Chmod(dir, 0o711))
		}
		script := `setsid sh -c '( systemd-notify --ready --status="serving on 80"; echo $? >"$EXITS" )'; exec sleep 1000`
		says := func(a *config.Actor) {
			a.Env, a.User, a.Cwd = map[string]string{"EXITS": exits.path}, user, "/"
			notifies(time.Minute)(a)
		}
		w := run(t, shell("d", config.Daemon, script, says), shell("w", config.Worker, script, says),
			shell("after", config.Task, "cat", func(a *config.Actor) { a.After = []string{"d", "w"} }))
		for _, name := range []string{"d", "w"} {
			if s := w.state(name, "up"); s.Says != "serving on 80" {
				t.Errorf("%s says %q", name, s.Says)
			}
			if got := exits.word(); got != "0" {
				t.Errorf("systemd-notify as %q ended with %s", user, got)
			}
		}
		if d := w.await(w.send("after", "x")); d.State != mailbox.Done {
			t.Errorf("%s", d.State)
		}
		if err := w.stop(); err != nil {
			t.Fatal(err)
		}
	}
}

// L6: what a program says before it ends at once counts, though nobody can look it
// up any more, through restarts; nothing of the sockets is left in the end.
func TestNotify_SenderThatIsGone(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "sd"), 0o711); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "sd", "1"), nil, 0o600); err != nil { // of a supervisor that was killed
		t.Fatal(err)
	}
	w := open(t, dir, shell("d", config.Daemon, `TEST_ROLE=sd TEST_SAYS="READY=1
STATUS=life $$" "$ME"; exec sleep 1000`, notifies(time.Minute), func(a *config.Actor) {
		a.Env = map[string]string{"ME": os.Args[0], "GORACE": "atexit_sleep_ms=0"}
	})).run()
	for range 5 {
		s := w.state("d", "up")
		if want := fmt.Sprintf("life %d", s.PID); s.Says != want {
			t.Errorf("says %q, want %q: not a word of the life before", s.Says, want)
		}
		if err := w.sup.Restart(t.Context(), "d"); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "sd")); !os.IsNotExist(err) {
		t.Errorf("sockets are left: %v", err)
	}
}

// Another process that lives, though of the same user, cannot speak for the child.
// Have from return nil and this fails.
func TestNotify_ForeignProcessIsRefused(t *testing.T) {
	socket := newFifo(t)
	mkfifo(t, socket.path+".go") // before the child can look for it
	w := run(t, shell("d", config.Daemon, `echo "$NOTIFY_SOCKET" >"$SOCKET"; read go <"$GO"; TEST_ROLE=sd TEST_SAYS=READY=1 "$ME"; exec sleep 1000`,
		notifies(time.Minute), func(a *config.Actor) {
			a.Env = map[string]string{"SOCKET": socket.path, "GO": socket.path + ".go", "ME": os.Args[0], "GORACE": "atexit_sleep_ms=0"}
		}))
	path := socket.word()
	for _, text := range []string{"READY=1\nSTATUS=forged", "STOPPING=1"} {
		if err := sdSend(path, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := sdBarrier(path); err != nil {
		t.Fatal(err)
	}
	if s := w.state("d", "starting"); s.Says != "" || s.Stopping {
		t.Errorf("a foreign process has said %+v", s)
	}
	if !strings.Contains(w.log.String(), "is none of the actor's") {
		t.Error("the log does not name the foreign process")
	}
	if err := os.WriteFile(socket.path+".go", []byte("go\n"), 0); err != nil {
		t.Fatal(err)
	}
	w.state("d", "up")
}

// Garbage harms nobody: it is not heeded, descriptors that come with it are closed,
// and what makes sense after it counts.
func TestNotify_GarbageIsHarmless(t *testing.T) {
	w := run(t, shell("d", config.Daemon, "", asRole("sd garbage"), notifies(time.Minute)))
	s := w.state("d", "up")
	if len(s.Says) > 256 || !strings.HasPrefix(s.Says, "€€€") || s.Stopping {
		t.Errorf("%+v", s)
	}
	if entries, err := os.ReadDir(filepath.Join(w.dir, "sd")); err != nil || len(entries) != 1 {
		t.Errorf("%d sockets, %v", len(entries), err)
	}
}

// A daemon's sign of life is WATCHDOG=1: as long as it comes the daemon lives, and
// when it stops, or when the daemon asks for it, it is killed and started again.
func TestNotify_Watchdog(t *testing.T) {
	for name, says := range map[string]string{"silent": "", "trigger": "WATCHDOG=trigger"} {
		t.Run(name, func(t *testing.T) {
			pulses := newFifo(t)
			limit := 5 * time.Second // a hundred pulses: so long a busy machine may keep the child waiting
			if says != "" {
				limit = time.Hour
			}
			w := run(t, shell("d", config.Daemon, "", asRole("sd pulse", "PULSES", pulses.path, "TEST_SAYS", says), notifies(time.Minute),
				func(a *config.Actor) { a.Watchdog = limit }))
			first := pulses.pid()
			w.state("d", "up") // it can speak before that, and is not signalled then
			for range 30 {
				if pid := pulses.pid(); pid != first {
					t.Fatalf("process %d was replaced by %d though it showed signs of life", first, pid)
				}
			}
			if err := w.sup.Signal(t.Context(), "d", "USR1"); err != nil {
				t.Fatal(err)
			}
			ev := w.event(0, "watchdog", kind("d", "watchdog"))
			if asked := strings.Contains(ev.Text, "it asked"); asked != (says != "") {
				t.Errorf("the event says %q", ev.Text)
			}
			w.slot("d", "up again", func(s supervisor.SlotStatus) bool { return s.State == "up" && s.PID != first })
		})
	}
}

// Before a process is ready, ready.timeout is its limit, not the watchdog: it says
// nothing before that.
func TestNotify_WatchdogBeginsWhenReady(t *testing.T) {
	w := run(t, shell("d", config.Daemon, "exec sleep 1000", notifies(500*time.Millisecond), func(a *config.Actor) {
		a.Watchdog, a.Intensity.Restarts = 50*time.Millisecond, 0
	}))
	w.state("d", "failed")
	if n := len(w.all("d", "watchdog")); n > 0 {
		t.Errorf("%d ends by the watchdog of a process that was starting", n)
	}
	if n := len(w.all("d", "not_ready")); n != 1 {
		t.Errorf("%d events not_ready", n)
	}
}

// Who does not ask for it has no socket, and no folder of them is made.
func TestNotify_NoneUnlessAsked(t *testing.T) {
	said := newFifo(t)
	w := run(t, shell("d", config.Daemon, `echo "${NOTIFY_SOCKET-none} ${WATCHDOG_USEC-none}" >"$SAID"; exec sleep 1000`, func(a *config.Actor) {
		a.Env = map[string]string{"SAID": said.path}
	}))
	if got := said.word(); got != "none none" {
		t.Errorf("environment: %q", got)
	}
	if _, err := os.Lstat(filepath.Join(w.dir, "sd")); !os.IsNotExist(err) {
		t.Errorf("a folder of sockets is there: %v", err)
	}
}

// What a process says of its reload and of its end is shown.
func TestNotify_ReloadingAndStopping(t *testing.T) {
	next := newFifo(t)
	mkfifo(t, next.path+".go") // before the child can look for it
	w := run(t, shell("d", config.Daemon, `say() { TEST_SAYS=$1 TEST_ROLE=sd "$ME"; }
		say READY=1; read go <"$GO"; say RELOADING=1; read go <"$GO"; say READY=1; read go <"$GO"; say STOPPING=1; exec sleep 1000`,
		notifies(time.Minute), func(a *config.Actor) {
			a.Env = map[string]string{"ME": os.Args[0], "GO": next.path + ".go", "GORACE": "atexit_sleep_ms=0"}
		}))
	for _, want := range []supervisor.SlotStatus{{}, {Reloading: true}, {}, {Stopping: true}} {
		w.slot("d", "as it says", func(s supervisor.SlotStatus) bool {
			return s.State == "up" && s.Reloading == want.Reloading && s.Stopping == want.Stopping
		})
		if !want.Stopping {
			if err := os.WriteFile(next.path+".go", []byte("go\n"), 0); err != nil {
				t.Fatal(err)
			}
		}
	}
}
