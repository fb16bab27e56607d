package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// A run is one series of kills.
type run struct {
	folder, binary string
	seed           uint64
	figures        figures
}

// figures are what a run has seen.
type figures struct {
	seed       uint64
	kills      int
	starting   int // of them before the supervisor was ready
	lives      int // of slots
	outlived   int // processes that were alive right after their supervisor was dead
	survivors  int // processes of an earlier supervisor beside one that is ready
	violations []string
	took       time.Duration
}

// tell says whether there was something to see. How many lives begin depends on where the
// kills fall, and on the backoff that they bring: each of the six slots has had one.
func (f figures) tell() bool { return f.kills >= 5 && f.lives >= 6 && f.outlived > 0 }

func (f figures) String() string {
	return fmt.Sprintf("seed %d: %d kills, %d of them during the start, in %s; %d lives of slots; %d processes outlived their supervisor, %d its successor's start; %d violations",
		f.seed, f.kills, f.starting, f.took.Round(time.Millisecond), f.lives, f.outlived, f.survivors, len(f.violations)) +
		strings.Join(append([]string{""}, f.violations...), "\n  ")
}

// kills kills n supervisors, or as many as can be killed within a time where that is
// not 0 and what was seen until then tells something. It returns an error where
// something was left or overlapped.
func kills(ctx context.Context, binary string, seed uint64, n int, within time.Duration) (f figures, err error) {
	folder, err := os.MkdirTemp("", "sv-kills-")
	if err != nil {
		return f, err
	}
	r := &run{folder: folder, binary: binary, seed: seed}
	r.figures.seed = seed
	defer func() {
		err = errors.Join(err, r.clear())
		if err == nil {
			err = os.RemoveAll(folder)
			return
		}
		err = fmt.Errorf("%w (kept: %s; again: go run ./scripts/kills -n %d -seed %d)", err, folder, n, seed)
	}()
	if r.binary == "" {
		r.binary = filepath.Join(folder, "sovereign")
		if out, err := exec.CommandContext(ctx, "go", "build", "-o", r.binary, "github.com/sovereign-run/sovereign/cmd/sovereign").CombinedOutput(); err != nil {
			return f, fmt.Errorf("build sovereign: %w\n%s", err, out)
		}
	}
	if err := r.writeActors(); err != nil {
		return f, err
	}
	began := time.Now()
	err = r.drive(ctx, func() (bool, error) {
		if r.figures.kills >= n {
			return true, nil
		}
		if within == 0 || time.Since(began) < within {
			return false, nil
		}
		_, err := r.read()
		return r.figures.tell(), err
	})
	r.figures.took = time.Since(began)
	said, failed := r.read()
	r.figures.violations = append(r.figures.violations, said...)
	err = errors.Join(err, failed)
	if err == nil && len(r.figures.violations) > 0 {
		err = errors.New("something was left or overlapped")
	}
	return r.figures, err
}

func (r *run) writeActors() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	quoted, err := json.Marshal(self) // a JSON string is a YAML one
	if err != nil {
		return err
	}
	text := `version: 1
defaults:
  replicas: 2
  stop: {timeout: 100ms}
  backoff: {initial: 1ms, max: 1ms}
  intensity: {restarts: 1000000, within: 1s}
  retry: {max_attempts: 1000000, initial: 1ms, max: 1ms}
actors:
`
	for _, mode := range []string{"task", "worker", "daemon"} {
		text += fmt.Sprintf("  %s: {command: [%s, %s, %s], mode: %s}\n", mode, quoted, lifeArgument, mode, mode)
	}
	return os.WriteFile(filepath.Join(r.folder, "actors.yaml"), []byte(text), 0o600)
}

// drive starts and kills until it is enough, and ends the last supervisor in order.
func (r *run) drive(ctx context.Context, enough func() (bool, error)) error {
	chance := rand.New(rand.NewPCG(r.seed, 1))
	usual := 300 * time.Millisecond // what a start takes here
	generation := 0
	for ; ; generation++ {
		if over, err := enough(); err != nil || ctx.Err() != nil {
			return errors.Join(err, context.Cause(ctx))
		} else if over {
			break
		}
		s, err := r.start(generation)
		if err != nil {
			return err
		}
		// On a machine where a start takes long, so does what comes after it.
		began, moment := time.Now(), time.Duration(chance.Float64()*float64(max(usual, 400*time.Millisecond)))
		if generation%2 == 0 {
			if err := s.ready(); err != nil {
				return err
			}
			usual = time.Since(began)
			if err := r.look(generation); err != nil {
				return err
			}
			if generation == 0 {
				if err := r.send(ctx); err != nil {
					return err
				}
			}
		} else {
			moment = time.Duration(chance.Float64() * float64(usual))
			r.figures.starting++
		}
		<-time.After(moment)
		if err := s.kill(); err != nil {
			return err
		}
		r.figures.kills++
		left, err := r.living(func(int) bool { return true })
		if err != nil {
			return err
		}
		r.figures.outlived += len(left)
	}
	s, err := r.start(generation)
	if err != nil {
		return err
	}
	if err := s.ready(); err != nil {
		return err
	}
	if err := r.look(generation); err != nil {
		return err
	}
	if err := s.end(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	return r.look(generation + 1)
}

// send gives each slot that works on messages one that never ends.
func (r *run) send(ctx context.Context) error {
	var sends errgroup.Group
	for _, to := range []string{"task", "task", "worker", "worker"} {
		sends.Go(func() error {
			cmd := exec.CommandContext(ctx, r.binary, "send", to, "x")
			cmd.Dir, cmd.Env = r.folder, r.environ()
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("send: %w: %s", err, out)
			}
			return nil
		})
	}
	return sends.Wait()
}

// look looks for what a supervisor before this generation has started.
func (r *run) look(generation int) error {
	left, err := r.living(func(g int) bool { return g < generation })
	r.figures.survivors += len(left)
	for _, pid := range left {
		r.figures.violations = append(r.figures.violations, fmt.Sprintf("process %d of an earlier supervisor lives when number %d is ready, or has ended", pid, generation))
	}
	return err
}

// read reads what the lives have written down: it counts those that have begun, and
// returns what they say of others.
func (r *run) read() (violations []string, err error) {
	text, err := os.ReadFile(filepath.Join(r.folder, "lives"))
	if err != nil && !errors.Is(err, os.ErrNotExist) { // none has begun
		return nil, err
	}
	r.figures.lives = 0
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "begin ") {
			r.figures.lives++
		} else if strings.HasSuffix(line, "\n") { // else it is being written
			violations = append(violations, strings.TrimSpace(line))
		}
	}
	return violations, nil
}

// living are the processes of the fleet whose generation which accepts. A process
// belongs to it by its environment, whatever its number means by now.
func (r *run) living(which func(generation int) bool) (out []int, err error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		env, err := os.ReadFile("/proc/" + e.Name() + "/environ") // empty for a zombie
		whole := "\x00" + string(env)
		if err != nil || !strings.Contains(whole, "\x00"+envFolder+"="+r.folder+"\x00") || !strings.Contains(whole, "\x00SOVEREIGN_SLOT=") {
			continue
		}
		_, rest, _ := strings.Cut(whole, "\x00"+envGeneration+"=")
		number, _, _ := strings.Cut(rest, "\x00")
		if g, err := strconv.Atoi(number); err == nil && which(g) {
			out = append(out, pid)
		}
	}
	return out, nil
}

// clear ends whatever a run that failed has left.
func (r *run) clear() error {
	for range 100 {
		left, err := r.living(func(int) bool { return true })
		if err != nil || len(left) == 0 {
			return err
		}
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL) // one that has ended is what is wanted
		}
	}
	return errors.New("processes of the fleet do not end")
}
