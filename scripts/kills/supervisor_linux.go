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

// limit is how long a supervisor may take to be ready, or to end in order.
const limit = 4 * time.Minute

// A supervisor is one `sovereign run`.
type supervisor struct {
	cmd    *exec.Cmd
	notify *net.UnixConn // where it reports that it is ready
	done   chan struct{} // closed when it has ended and err is set
	err    error
}

// start starts the supervisor of a generation. It is killed should this process end.
func (r *run) start(generation int) (*supervisor, error) {
	log, err := os.OpenFile(filepath.Join(r.folder, "supervisor.log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	socket := filepath.Join(r.folder, "notify")
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	notify, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(r.binary, "run", "actors.yaml")
	cmd.Dir, cmd.Stdout, cmd.Stderr = r.folder, log, log
	cmd.Env = append(r.environ(), "NOTIFY_SOCKET="+socket, envGeneration+"="+strconv.Itoa(generation))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	s := &supervisor{cmd: cmd, notify: notify, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the death signal comes with the end of this thread
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
	return s, nil
}

// environ is what supervisors, and what they start, are given.
func (r *run) environ() (out []string) {
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "SOVEREIGN_") && !strings.HasPrefix(kv, "KILLS_") && !strings.HasPrefix(kv, "NOTIFY_SOCKET=") {
			out = append(out, kv)
		}
	}
	return append(out, envFolder+"="+r.folder, envBinary+"="+r.binary, envSeed+"="+strconv.FormatUint(r.seed, 10), "GORACE=atexit_sleep_ms=0")
}

// ready returns once all actors are.
func (s *supervisor) ready() error {
	if err := s.notify.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return fmt.Errorf("wait for the supervisor: %w", err)
	}
	for b := make([]byte, 4096); ; {
		n, err := s.notify.Read(b)
		if err != nil {
			return fmt.Errorf("the supervisor, pid %d, is not ready: %w", s.cmd.Process.Pid, err)
		}
		if strings.Contains(string(b[:n]), "READY=1") {
			return nil
		}
	}
}

// kill ends it with SIGKILL. It is an error if it had ended already.
func (s *supervisor) kill() error {
	select {
	case <-s.done:
		return fmt.Errorf("the supervisor ended by itself: %w", s.err)
	default:
	}
	err := s.cmd.Process.Kill()
	<-s.done
	return err
}

// end ends it in order.
func (s *supervisor) end(ctx context.Context) error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("end the supervisor: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	select {
	case <-s.done:
		if s.err != nil {
			return fmt.Errorf("the supervisor was to end in order: %w", s.err)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the supervisor has not ended: %w", context.Cause(ctx))
	}
}
