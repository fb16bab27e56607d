package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// A demoSupervisor is a child of the demonstration: `sovereign run`, in a process
// group of its own, so that Ctrl-C reaches the demonstration alone.
type demoSupervisor struct {
	pid  int
	proc *os.Process
	done chan struct{} // closed when it has ended and err is set
	err  error         // how it ended
}

// startDemoSupervisor starts it. What it prints goes to the log in folder.
func startDemoSupervisor(folder string) (*demoSupervisor, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	log, err := os.OpenFile(filepath.Join(folder, demoLog), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(self, "run", "actors.yaml")
	cmd.Dir, cmd.Stdout, cmd.Stderr = folder, log, log
	cmd.Env = demoEnviron(os.Environ())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	endWithParent(cmd.SysProcAttr)
	s := &demoSupervisor{done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The death signal of a child comes with the end of the thread that started
		// it: this thread lives for as long as the child.
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			s.err = cmd.Wait()
			close(s.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start the supervisor: %w", err)
	}
	s.pid, s.proc = cmd.Process.Pid, cmd.Process
	return s, nil
}

// demoEnviron is env without what would make the demonstration somebody's
// worker, or a service.
func demoEnviron(env []string) []string {
	var out []string
	for _, kv := range env {
		if !strings.HasPrefix(kv, "SOVEREIGN_") && !strings.HasPrefix(kv, "NOTIFY_SOCKET=") {
			out = append(out, kv)
		}
	}
	return out
}

// kill ends it with SIGKILL and waits for its end.
func (s *demoSupervisor) kill() {
	_ = s.proc.Kill() // one that has ended is what is wanted
	<-s.done
}

// demoStop is how long the supervisor gets to stop in order.
const demoStop = 10 * time.Second

// stop ends it in order.
func (s *demoSupervisor) stop() error {
	_ = s.proc.Signal(syscall.SIGTERM) // see kill
	limit := time.NewTimer(demoStop)
	defer limit.Stop()
	select {
	case <-s.done:
	case <-limit.C:
		s.kill()
		return errors.New("the supervisor did not stop within " + demoStop.String())
	}
	if s.err != nil {
		return fmt.Errorf("stop the supervisor: %w", s.err)
	}
	return nil
}
