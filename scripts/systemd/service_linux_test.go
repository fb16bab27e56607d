package systemd_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	unitName = "sovereign.service"
	program  = "/opt/sovereign/bin/sovereign"
	config   = "/opt/jobs/actors.yaml"
	watchdog = 10 * time.Second // a supervisor that is well gets its turn in half of it, however busy the machine
)

// slow takes a while to be ready and says so by systemd's own means; stubborn leaves
// a tree that ignores TERM, and takes all of its stop.timeout.
const actors = `version: 1
data: /var/lib/jobs
actors:
  slow:
    mode: daemon
    command: 'sleep 0.5; : >/run/slow.is.up; systemd-notify --ready --status="serving"; exec sleep 1000'
    ready: {notify: true}
  stubborn:
    mode: daemon
    command: 'env >/run/stubborn.env; trap "" TERM; setsid sh -c "trap \"\" TERM; sleep 1000; :" & while :; do sleep 1000; done'
    stop: {timeout: 1s}
  jobs:
    command: [cat]
`

// TestService holds each claim of the printed unit against a real systemd, in the
// order in which they happen to an installation.
func TestService(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short")
	}
	if missing := lacking(); missing != "" {
		if os.Getenv("SOVEREIGN_SYSTEMD") != "" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	c := boot(t, func(root string) {
		build := exec.Command("go", "build", "-trimpath", "-o", root+program, "./cmd/sovereign")
		build.Dir = "../.."
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("build: %v\n%s", err, out)
		}
		write(t, root+config, actors)
		write(t, root+"/etc/systemd/system/"+unitName+".d/test.conf", "[Service]\nWatchdogSec="+watchdog.String()+"\nRestartSec=200ms\n")
	})
	s := &supervised{container: c}
	for _, step := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"Install", s.install},
		{"ReadyAfterTheActors", s.start},
		{"ChildrenInCgroupsOfTheirOwn", s.cgroups},
		{"NothingOfTheManagerReachesChildren", s.environment},
		{"StatusFollows", s.status},
		{"Reload", s.reload},
		{"ReloadThatIsRefused", s.reloadRefused},
		{"Upgrade", s.upgrade},
		{"SIGKILLOfTheMainProcess", s.killed},
		{"WatchdogKillsAHungSupervisor", s.hung},
		{"Stop", s.stop},
		{"StopThatTakesLonger", s.slowStop},
	} {
		if !t.Run(step.name, func(t *testing.T) { c.t = t; step.run(t) }) {
			break // the next ones go on from here
		}
	}
	c.t = t
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// supervised is the service in the container.
type supervised struct{ *container }

// show is a property of the unit.
func (s *supervised) show(property string) string {
	return s.run("systemctl", "show", "-P", property, unitName)
}

// is looks whether the unit has all of these properties ("ActiveState=active") at once:
// what is read one after the other can be of two lives.
func (s *supervised) is(properties ...string) bool {
	var names []string
	for _, p := range properties {
		name, _, _ := strings.Cut(p, "=")
		names = append(names, name)
	}
	have := strings.Split(s.run("systemctl", "show", "-p", strings.Join(names, ","), unitName), "\n")
	return !slices.ContainsFunc(properties, func(p string) bool { return !slices.Contains(have, p) })
}

// pids are all processes of the service, as they are numbered inside.
func (s *supervised) pids() (out []string) {
	text, _, _ := s.try("sh", "-c", `find /sys/fs/cgroup/system.slice/`+unitName+` -name cgroup.procs -exec cat {} + 2>/dev/null`)
	return strings.Fields(text)
}

// pidOf is the process of an actor's one slot, 0 if there is none.
func (s *supervised) pidOf(actor string) string {
	s.t.Helper()
	var status struct {
		Actors []struct {
			Slots []struct {
				PID int `json:"pid"`
			} `json:"slots"`
		} `json:"actors"`
	}
	s.must(json.Unmarshal([]byte(s.run(program, "--data", "/var/lib/jobs", "status", "--json", actor)), &status))
	if len(status.Actors) != 1 || len(status.Actors[0].Slots) != 1 {
		s.t.Fatalf("status of %s: %+v", actor, status)
	}
	return strconv.Itoa(status.Actors[0].Slots[0].PID)
}

// alive are those of pids that live.
func (s *supervised) alive(pids []string) (out []string) {
	for _, pid := range pids {
		if state, status, _ := s.try("sed", "-n", "s/^State:[[:space:]]*//p", "/proc/"+pid+"/status"); status == 0 && !strings.HasPrefix(state, "Z") {
			out = append(out, pid)
		}
	}
	return out
}

// restarted sends the supervisor a signal, waits until systemd has started it again, and
// checks that nothing is left of what ran before.
func (s *supervised) restarted(t *testing.T, signal string) {
	t.Helper()
	main, before := s.show("MainPID"), s.pids()
	restarts, _ := strconv.Atoi(s.show("NRestarts"))
	if len(before) < 5 {
		t.Fatalf("only %q run", before)
	}
	s.run("kill", signal, main)
	s.eventually("active again", func() bool {
		return s.is("ActiveState=active", "SubState=running", "NRestarts="+strconv.Itoa(restarts+1))
	})
	if s.is("MainPID=" + main) {
		t.Errorf("the main process is %s as before", main)
	}
	if left := s.alive(before); len(left) > 0 {
		t.Errorf("processes %q of the life before are left", left)
	}
	if got := s.show("StatusText"); got != "3 actors up" {
		t.Errorf("status %q\n%s", got, s.run("journalctl", "--no-pager", "-n", "40", "-u", unitName))
	}
	s.run(program, "--data", "/var/lib/jobs", "verify") // exits 1 where anything is damaged
}

// The unit is written once, and not over somebody's changes; systemd has nothing to
// say against it.
func (s *supervised) install(t *testing.T) {
	if out := s.run(program, "systemd", "--install", config); !strings.Contains(out, "systemctl daemon-reload") {
		t.Errorf("not told to reload: %s", out)
	}
	path := "/etc/systemd/system/" + unitName
	s.run(program, "systemd", "--install", config) // the same again
	s.run("sh", "-c", "echo '# mine' >>"+path)
	if out, status, errs := s.try(program, "systemd", "--install", config); status == 0 || !strings.Contains(errs, "--force") {
		t.Errorf("a changed unit: exit status %d, %s %s", status, out, errs)
	}
	s.run(program, "systemd", "--install", "--force", config)
	if out, status, errs := s.try("systemd-analyze", "verify", "--man=no", path); status != 0 || out+errs != "" {
		t.Errorf("systemd-analyze: exit status %d\n%s%s", status, out, errs)
	}
	s.run("systemctl", "daemon-reload")
}

// L6: systemctl start returns when the actors are ready, not when the process is.
func (s *supervised) start(t *testing.T) {
	s.run("systemctl", "start", unitName)
	s.run("test", "-e", "/run/slow.is.up")
	if got := s.show("StatusText"); got != "3 actors up" {
		t.Errorf("status %q", got)
	}
	if got := s.run(program, "--data", "/var/lib/jobs", "status", "slow"); !strings.Contains(got, "slow says: serving") {
		t.Errorf("what the actor says is not shown:\n%s", got)
	}
}

// Delegation works, with all the hardening: each child's tree has a cgroup of its own
// below the service's.
func (s *supervised) cgroups(t *testing.T) {
	got := s.run("cat", "/proc/"+s.pidOf("slow")+"/cgroup")
	if !strings.Contains(got, "/system.slice/"+unitName+"/sovereign-") {
		t.Errorf("a child is in %s", got)
	}
}

// L6: a child that reports would report for the supervisor.
func (s *supervised) environment(t *testing.T) {
	for line := range strings.Lines(s.run("cat", "/run/stubborn.env")) {
		for _, name := range []string{"NOTIFY_SOCKET=", "WATCHDOG_", "LISTEN_"} {
			if strings.HasPrefix(line, name) {
				t.Errorf("a child has %s", line)
			}
		}
	}
}

// What systemctl status shows follows what happens.
func (s *supervised) status(*testing.T) {
	s.run(program, "--data", "/var/lib/jobs", "stop", "stubborn")
	s.eventually("the status that one is stopped", func() bool { return s.show("StatusText") == "3 actors, 2 up; stubborn stopped" })
	s.run(program, "--data", "/var/lib/jobs", "start", "stubborn")
	s.eventually("the status that all are up", func() bool { return s.show("StatusText") == "3 actors up" })
}

// systemctl reload returns once all is applied: what is unchanged keeps its process.
// SIGHUP does the same, and says so with RELOADING and READY.
func (s *supervised) reload(t *testing.T) {
	main, slow := s.show("MainPID"), s.pidOf("slow")
	s.run("sh", "-c", "printf '  added:\\n    mode: daemon\\n    command: exec sleep 1000\\n' >>"+config)
	s.run("systemctl", "reload", unitName)
	if s.pidOf("added") == "0" || s.pidOf("slow") != slow || s.show("MainPID") != main {
		t.Errorf("added runs as %s, slow was %s and is %s, the supervisor was %s and is %s",
			s.pidOf("added"), slow, s.pidOf("slow"), main, s.show("MainPID"))
	}
	s.eventually("the status with one more", func() bool { return s.show("StatusText") == "4 actors up" })
	s.run("sed", "-i", "/added:/,$d", config)
	s.run("kill", "-HUP", main)
	s.eventually("the status with one less", func() bool { return s.show("StatusText") == "3 actors up" })
	if state := s.show("ActiveState"); state != "active" || s.show("MainPID") != main || s.pidOf("slow") != slow {
		t.Errorf("%s, the supervisor was %s and is %s", state, main, s.show("MainPID"))
	}
}

// A file that is refused fails the reload, and changes nothing.
func (s *supervised) reloadRefused(t *testing.T) {
	main, slow := s.show("MainPID"), s.pidOf("slow")
	s.run("sh", "-c", "echo '  wrong: {}' >>"+config)
	if _, status, _ := s.try("systemctl", "reload", unitName); status == 0 {
		t.Error("the reload of a wrong file succeeded")
	}
	if state := s.show("ActiveState"); state != "active" || s.show("MainPID") != main || s.pidOf("slow") != slow {
		t.Errorf("%s, the supervisor was %s and is %s", state, main, s.show("MainPID"))
	}
	s.run("sed", "-i", "/wrong:/d", config)
}

// Another program takes the supervisor's place: to systemd it is the same main process,
// which says RELOADING and READY and goes on feeding the watchdog; its children are the
// same, and so is the service after a second one.
func (s *supervised) upgrade(t *testing.T) {
	main, before := s.show("MainPID"), s.pids()
	began := s.show("ActiveEnterTimestampMonotonic")
	next := program + "-next"
	s.run("cp", program, next)
	for _, to := range []string{next, program} {
		s.run(program, "--data", "/var/lib/jobs", "upgrade", "--binary", to)
		if got := s.run("readlink", "/proc/"+main+"/exe"); got != to {
			t.Errorf("%s runs, want %s", got, to)
		}
		s.eventually("active after the upgrade", func() bool {
			return s.is("ActiveState=active", "SubState=running", "StatusText=3 actors up")
		})
		if got := s.show("MainPID"); got != main {
			t.Errorf("the main process was %s and is %s", main, got)
		}
		if got := s.alive(before); len(got) != len(before) {
			t.Errorf("of the processes %q there are %q", before, got)
		}
	}
	upgraded := time.Now()
	s.eventually("the watchdog's time is over", func() bool { return time.Since(upgraded) > watchdog+watchdog/4 })
	if got := s.show("MainPID"); got != main || s.show("ActiveEnterTimestampMonotonic") != began || s.show("NRestarts") != "0" {
		t.Errorf("the service was started anew: %s, then %s", main, got)
	}
	if got := s.run("cat", "/proc/"+s.pidOf("slow")+"/cgroup"); !strings.Contains(got, "/system.slice/"+unitName+"/sovereign-") {
		t.Errorf("a child is in %s", got)
	}
}

// A killed supervisor is started again, its children of before are gone, and what was
// recorded holds.
func (s *supervised) killed(t *testing.T) {
	id := s.run(program, "--data", "/var/lib/jobs", "send", "jobs", "before", "--delay", "1h")
	s.restarted(t, "-KILL")
	if got := s.run(program, "--data", "/var/lib/jobs", "inbox", "show", strings.Fields(id)[0]); !strings.Contains(got, "NEW") {
		t.Errorf("the message of before: %s", got)
	}
}

// A supervisor that hangs is aborted by its watchdog, and started again, although an
// aborted Go program ends with 2, as one with a wrong file does.
func (s *supervised) hung(t *testing.T) {
	main := s.show("MainPID")
	// One that is well is left alone, for longer than its watchdog.
	active := time.Now()
	s.eventually("the watchdog's time is over", func() bool { return time.Since(active) > watchdog+watchdog/4 })
	if got := s.show("MainPID"); got != main {
		t.Errorf("a healthy supervisor was replaced: %s, then %s", main, got)
	}
	s.restarted(t, "-STOP")
	if journal := s.run("journalctl", "--no-pager", "-u", unitName); !strings.Contains(journal, "Watchdog timeout") {
		t.Errorf("no watchdog in\n%s", journal)
	}
}

// A stop takes what the actors need, is a success, and leaves nothing.
func (s *supervised) stop(t *testing.T) {
	before := s.pids()
	began := time.Now()
	s.run("systemctl", "stop", unitName)
	if took := time.Since(began); took < 900*time.Millisecond {
		t.Errorf("the stop took %v, and the slowest actor has 1s", took)
	}
	s.gone(t, before)
}

func (s *supervised) gone(t *testing.T, before []string) {
	t.Helper()
	if state, result := s.show("ActiveState"), s.show("Result"); state != "inactive" || result != "success" {
		t.Errorf("%s, %s", state, result)
	}
	if left := append(s.pids(), s.alive(before)...); len(left) > 0 {
		t.Errorf("left are %q", slices.Compact(left))
	}
}

// A stop that takes longer than the unit allows, for the unit is older than the file,
// is waited for: the supervisor asks for the time.
func (s *supervised) slowStop(t *testing.T) {
	s.run("sed", "-i", "s/timeout: 1s/timeout: 4s/", config)
	s.run("sh", "-c", "echo TimeoutStopSec=1 >>/etc/systemd/system/"+unitName+".d/test.conf")
	s.run("systemctl", "daemon-reload")
	s.run("systemctl", "start", unitName)
	before := s.pids()
	began := time.Now()
	s.run("systemctl", "stop", unitName)
	if took := time.Since(began); took < 3900*time.Millisecond {
		t.Errorf("the stop took %v: an actor was cut short", took)
	}
	s.gone(t, before)
}
