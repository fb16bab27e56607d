package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/sovereign-run/sovereign/server"
)

// A fleet is a running supervisor whose children say in a FIFO that they are up.
type fleet struct {
	dir     string
	cmd     *exec.Cmd
	fifo    *os.File
	lines   chan line
	started time.Time
	ended   chan struct{} // closed when the supervisor has ended, with err
	err     error
}

// A line is what a child wrote to the FIFO, and when it was read.
type line struct {
	text string
	at   time.Time
}

// patience is how long a child may take to be up.
const patience = time.Minute

// launch starts a supervisor of the actors, YAML below `actors:`, in dir. Their
// commands find the FIFO's path in $UP.
func (b *bench) launch(dir, actors string, flags ...string) (*fleet, error) {
	file := filepath.Join(dir, "actors.yaml")
	text := "version: 1\ndefaults: {env: {UP: " + filepath.Join(dir, "up") + "}}\nactors:\n" + actors
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	return launchProgram(dir, append([]string{b.sovereign, "run", file}, flags...))
}

// launchProgram starts any supervisor, in dir, whose children write to the FIFO "up"
// there.
func launchProgram(dir string, argv []string) (*fleet, error) {
	path := filepath.Join(dir, "up")
	if err := syscall.Mkfifo(path, 0o600); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	// Open for both, it never comes to its end, and opening it waits for nobody.
	fifo, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, errors.Join(err, fifo.Close())
	}
	defer log.Close()
	f := &fleet{dir: dir, fifo: fifo, lines: make(chan line, 1<<16), ended: make(chan struct{})}
	f.cmd = exec.Command(argv[0], argv[1:]...)
	f.cmd.Dir, f.cmd.Stdout, f.cmd.Stderr = dir, log, log
	go f.read() // until stop closes the FIFO
	f.started = time.Now()
	if err := f.cmd.Start(); err != nil {
		return nil, errors.Join(err, fifo.Close())
	}
	go func() {
		defer close(f.ended)
		f.err = f.cmd.Wait()
	}()
	return f, nil
}

func (f *fleet) read() {
	defer close(f.lines)
	r := bufio.NewReader(f.fifo)
	for {
		text, err := r.ReadString('\n')
		if err != nil {
			return
		}
		f.lines <- line{strings.TrimSpace(text), time.Now()}
	}
}

// up waits for the next line.
func (f *fleet) up(ctx context.Context) (line, error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case l := <-f.lines:
		return l, nil
	case <-f.ended:
		return line{}, errors.New("the supervisor has ended")
	case <-ctx.Done():
		return line{}, context.Cause(ctx)
	case <-timer.C:
		return line{}, fmt.Errorf("no child came up within %s; the supervisor says: %s", patience, f.said())
	}
}

// listens waits until people can ask the supervisor.
func (f *fleet) listens(ctx context.Context) error {
	for {
		conn, err := net.Dial("unix", f.socket(server.ControlSocket))
		if err == nil {
			return conn.Close()
		}
		if time.Since(f.started) > patience {
			return err
		}
		if err := rest(ctx, 2*time.Millisecond); err != nil {
			return err
		}
	}
}

// said is the end of what the supervisor wrote.
func (f *fleet) said() string {
	text, _ := os.ReadFile(filepath.Join(f.dir, "log"))
	return string(bytes.TrimSpace(text[max(0, len(text)-600):]))
}

func (f *fleet) pid() int { return f.cmd.Process.Pid }

func (f *fleet) pids() []int { return []int{f.pid()} }

func (f *fleet) socket(name string) string { return filepath.Join(f.dir, ".sovereign", name) }

// stop ends the supervisor as its user would, and waits until it has ended.
func (f *fleet) stop() error {
	defer f.fifo.Close()
	_ = f.cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
	return f.wait()
}

// kill ends the supervisor as nobody should.
func (f *fleet) kill() {
	_ = f.cmd.Process.Kill()
	<-f.ended
	_ = f.fifo.Close()
}

// wait returns when the supervisor has ended.
func (f *fleet) wait() error {
	kill := time.AfterFunc(limit, func() { _ = f.cmd.Process.Kill() })
	defer kill.Stop()
	if <-f.ended; f.err != nil {
		return fmt.Errorf("the supervisor ended with %w, and said: %s", f.err, f.said())
	}
	return nil
}
