package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A rival is a supervisor under test: how it is told to keep n children, and to stop.
type rival struct {
	name    string
	program string         // "" = ours
	stop    syscall.Signal // that ends it and its children
	write   func(dir, child string, n int) ([]string, error)
}

// rivals take turns at each size. All keep the same child, and none waits
// longer before a restart than it has to: ours 1 ms from the second on, supervisord until
// its tick of a second, runit and s6 a second for a child that lived for less. Ours keeps
// what children write as well; the others' write where the supervisor itself does. The
// bare loop is the floor: see keepBare.
var rivals = []rival{
	{name: "sovereign", stop: syscall.SIGTERM},
	{name: "bare loop", program: os.Args[0], stop: syscall.SIGTERM, write: func(_, child string, n int) ([]string, error) {
		return []string{os.Args[0], "-keep", strconv.Itoa(n), child}, nil
	}},
	{name: "supervisord", program: "supervisord", stop: syscall.SIGTERM, write: writeSupervisord},
	{name: "runit", program: "runsvdir", stop: syscall.SIGHUP, write: writeRunit},
	{name: "s6", program: "s6-svscan", stop: syscall.SIGTERM, write: writeS6},
}

// supervisors measures what supervisors cost with children that wait.
func (b *bench) supervisors(ctx context.Context) error {
	var present []rival
	for _, r := range rivals {
		if !strings.Contains(r.name, b.only) {
			continue
		}
		if _, err := exec.LookPath(r.program); r.program != "" && err != nil {
			fmt.Printf("%s is not installed, and left out (apt-get install supervisor runit s6)\n\n", r.name)
			continue
		}
		present = append(present, r)
	}
	fmt.Printf("children that wait, of each supervisor the same; %d restarts after a SIGKILL; watched for %s\n\n", b.restarts, b.idle)
	t := newTable("children", "supervisor", "all up ms", "restart ms p50", "p99", "processes", "threads", "PSS KiB", "KiB a child",
		"CPU ms/min", "all stopped ms")
	for _, n := range b.actors {
		for _, r := range present {
			w, err := b.watchRival(ctx, r, n)
			if err != nil {
				return fmt.Errorf("%s, %d children: %w", r.name, n, err)
			}
			t.row(strconv.Itoa(n), r.name, figure(millis(w.up)), figure(w.restarts.at(0.5)), figure(w.restarts.at(0.99)), strconv.Itoa(w.processes),
				figure(w.threads), figure(w.pss), figure(w.pss/float64(n)), fmt.Sprintf("%.3f", w.cpu), figure(millis(w.stopped)))
		}
	}
	t.end()
	return nil
}

// A watchedRival is what was seen of one supervisor. Its footprint is that of all its
// processes.
type watchedRival struct {
	watching
	processes int
}

func (b *bench) watchRival(ctx context.Context, r rival, n int) (w watchedRival, err error) {
	dir, err := b.folder()
	if err != nil {
		return w, err
	}
	f, err := b.launchRival(r, dir, n)
	if err != nil {
		return w, err
	}
	children := map[int]bool{}
	defer func() {
		f.kill()
		for pid := range children {
			_ = syscall.Kill(pid, syscall.SIGKILL) // where its supervisor has not ended it
		}
	}()
	next := func() (line, int, error) {
		l, err := f.up(ctx)
		if err != nil {
			return l, 0, err
		}
		pid, err := strconv.Atoi(l.text)
		children[pid] = true
		return l, pid, err
	}
	var pids []int
	for range n {
		l, pid, err := next()
		if err != nil {
			return w, err
		}
		w.up = l.at.Sub(f.started)
		pids = append(pids, pid)
	}
	if err := rest(ctx, 5*time.Second); err != nil {
		return w, err
	}
	own := tree(f.pid(), children)
	before := cpuOf(own)
	if err := rest(ctx, b.idle); err != nil {
		return w, err
	}
	w.cpu = millis(cpuOf(own)-before) / b.idle.Minutes()
	w.processes = len(own)
	for _, pid := range own {
		one := footprintOf(pid)
		w.pss += one.pss
		w.threads += one.threads
	}
	for i := range b.restarts {
		at := time.Now()
		victim := &pids[i%n]
		delete(children, *victim)
		if err := syscall.Kill(*victim, syscall.SIGKILL); err != nil {
			return w, err
		}
		l, pid, err := next()
		if err != nil {
			return w, err
		}
		w.restarts = append(w.restarts, l.at.Sub(at))
		*victim = pid
	}
	at := time.Now()
	if err := f.cmd.Process.Signal(r.stop); err != nil {
		return w, err
	}
	for pid := range children {
		for lives(pid) {
			if time.Since(at) > patience {
				return w, fmt.Errorf("child %d lives %s after the stop", pid, patience)
			}
			if err := rest(ctx, time.Millisecond); err != nil {
				return w, err
			}
		}
	}
	err = f.wait()
	w.stopped = time.Since(at)
	var status *exec.ExitError
	if r.program != "" && errors.As(err, &status) {
		err = nil // runsvdir says with its status that it was told to stop
	}
	return w, err
}

// launchRival starts a supervisor of n children, whose numbers come from the FIFO.
func (b *bench) launchRival(r rival, dir string, n int) (*fleet, error) {
	child, err := child(dir)
	if err != nil {
		return nil, err
	}
	if r.program == "" {
		var actors strings.Builder
		for i := range n {
			fmt.Fprintf(&actors, "  c%d:\n    mode: daemon\n    command: [%s]\n    backoff: {initial: 1ms, max: 1ms}\n    intensity: {restarts: 1000000, within: 1s}\n", i, child)
		}
		return b.launch(dir, actors.String())
	}
	argv, err := r.write(dir, child, n)
	if err != nil {
		return nil, err
	}
	return launchProgram(dir, argv)
}

func writeSupervisord(dir, child string, n int) ([]string, error) {
	file := filepath.Join(dir, "supervisord.conf")
	return []string{"supervisord", "-c", file}, os.WriteFile(file, fmt.Appendf(nil, `[supervisord]
nodaemon=true
minfds=20000
minprocs=2000
logfile=/dev/null
logfile_maxbytes=0
pidfile=%[1]s/pid
[program:c]
command=%[2]s
process_name=c%%(process_num)d
numprocs=%[3]d
autorestart=true
startsecs=0
redirect_stderr=true
stdout_logfile=NONE
`, dir, child, n), 0o600)
}

func writeRunit(dir, child string, n int) ([]string, error) {
	services, err := writeServices(dir, child, n)
	return []string{"runsvdir", "-P", services}, err
}

func writeS6(dir, child string, n int) ([]string, error) {
	services, err := writeServices(dir, child, n)
	return []string{"s6-svscan", "-c", strconv.Itoa(2*n + 100), services}, err
}

// writeServices makes a folder of n services, as runit and s6 have them.
func writeServices(dir, child string, n int) (string, error) {
	services := filepath.Join(dir, "services")
	for i := range n {
		service := filepath.Join(services, "c"+strconv.Itoa(i))
		if err := os.MkdirAll(service, 0o700); err != nil {
			return "", err
		}
		if err := os.Link(child, filepath.Join(service, "run")); err != nil {
			return "", err
		}
	}
	return services, nil
}

// tree is a supervisor's process with those that it has made, except children.
func tree(pid int, children map[int]bool) []int {
	if children[pid] {
		return nil
	}
	all := []int{pid}
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, name := range lists {
		text, _ := os.ReadFile(name)
		for _, word := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(word); err == nil {
				all = append(all, tree(child, children)...)
			}
		}
	}
	return all
}

func cpuOf(pids []int) (sum time.Duration) {
	for _, pid := range pids {
		sum += cpuTime(pid)
	}
	return sum
}

// lives reports whether a process is there, and no zombie.
func lives(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	rest := string(text[strings.LastIndexByte(string(text), ')')+1:])
	return !strings.HasPrefix(rest, " Z") && !strings.HasPrefix(rest, " X")
}
