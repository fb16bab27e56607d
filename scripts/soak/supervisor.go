package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// limit is how long a supervisor may take to come up, or to end in order.
const limit = 3 * time.Minute

// A Supervisor is one `sovereign run`.
type Supervisor struct {
	pid    int
	proc   *os.Process
	notify *net.UnixConn // where it reports that it is up
	done   chan struct{} // closed when it has ended and err is set
	err    error
}

// startSupervisor starts the supervisor of a generation in folder. It is killed
// should this process end.
func startSupervisor(run *Run, generation int, calm bool, args ...string) (*Supervisor, error) {
	log, err := os.OpenFile(filepath.Join(run.folder, "supervisor.log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	socket := filepath.Join(run.folder, fmt.Sprintf("notify-%d", generation))
	notify, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(run.binary, append([]string{"run", "actors.yaml"}, args...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = run.folder, log, log
	cmd.Env = append(outside(os.Environ()), "NOTIFY_SOCKET="+socket, envFolder+"="+run.folder, envBinary+"="+run.binary,
		envGeneration+"="+strconv.Itoa(generation), envSeed+"="+strconv.FormatUint(run.seed, 10))
	if calm {
		cmd.Env = append(cmd.Env, envCalm+"=1")
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	endWithParent(cmd.SysProcAttr)
	s := &Supervisor{notify: notify, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The death signal comes with the end of the thread that started the child:
		// this thread lives for as long as the child.
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			s.err = cmd.Wait()
			_ = notify.Close() // whoever waits for its report waits no more
			close(s.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, errors.Join(fmt.Errorf("start the supervisor: %w", err), notify.Close())
	}
	s.pid, s.proc = cmd.Process.Pid, cmd.Process
	return s, nil
}

// outside is env without what would make a supervisor somebody's worker or service.
func outside(env []string) (out []string) {
	for _, kv := range env {
		if !strings.HasPrefix(kv, "SOVEREIGN_") && !strings.HasPrefix(kv, "SOAK_") && !strings.HasPrefix(kv, "NOTIFY_SOCKET=") {
			out = append(out, kv)
		}
	}
	return out
}

// up returns once the supervisor has recovered what there was and has started its
// actors.
func (s *Supervisor) up() error {
	if err := s.notify.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return fmt.Errorf("wait for the supervisor: %w", err)
	}
	for b := make([]byte, 4096); ; {
		n, err := s.notify.Read(b)
		if err != nil {
			return fmt.Errorf("the supervisor, pid %d, has not come up: %w", s.pid, err)
		}
		if strings.Contains(string(b[:n]), "READY=1") {
			return nil
		}
	}
}

// kill ends it with SIGKILL.
func (s *Supervisor) kill() {
	_ = s.proc.Kill() // one that has ended is what is wanted
	<-s.done
}

// ended waits for its end.
func (s *Supervisor) ended(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the supervisor, pid %d, has not ended: %w", s.pid, context.Cause(ctx))
	}
}

// term ends it in order. It is an error if the exit status is not 0.
func (s *Supervisor) term(ctx context.Context) error {
	if err := s.proc.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("end the supervisor: %w", err)
	}
	if err := s.ended(ctx, limit); err != nil {
		return err
	}
	if s.err != nil {
		return fmt.Errorf("the supervisor was to end in order: %w", s.err)
	}
	return nil
}
