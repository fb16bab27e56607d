package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// cost counts the supervisor's system calls for each message.
func (b *bench) cost(ctx context.Context) error {
	if _, err := exec.LookPath("strace"); err != nil {
		fmt.Println("left out: strace is not installed (apt-get install strace)")
		return nil
	}
	columns := []struct {
		name    string
		workers int
		n       int
		run     func(s broker, n int) error
	}{
		{"1 client", 1, b.alone / 5, func(s broker, n int) error { _, err := alone(ctx, s, n); return err }},
		{"64+64", side, b.crowd / 5, func(s broker, n int) error { _, err := crowded(ctx, s, n, false); return err }},
		{"64+64, complete+next", side, b.crowd / 5, func(s broker, n int) error { _, err := crowded(ctx, s, n, true); return err }},
	}
	counts := make([]map[string]float64, len(columns))
	names := map[string]bool{}
	heads := []string{"system calls a message"}
	for i, c := range columns {
		heads = append(heads, c.name)
		s, err := b.product(ctx, c.workers, false)
		if err != nil {
			return err
		}
		counts[i], err = b.traced(s.pids()[0], func() error { return c.run(s, c.n) })
		if err = errors.Join(err, s.stop()); err != nil {
			return err
		}
		for name := range counts[i] {
			counts[i][name] /= float64(c.n)
			names[name] = names[name] || counts[i][name] >= 0.05
		}
	}
	t := newTable(heads...)
	var all []string
	for name, many := range names {
		if many {
			all = append(all, name)
		}
	}
	slices.SortFunc(all, func(x, y string) int {
		if d := counts[0][y] - counts[0][x]; d != 0 {
			return int(max(-1, min(1, d*1e6)))
		}
		return strings.Compare(x, y)
	})
	for _, name := range all {
		cells := []string{name}
		for _, c := range counts {
			cells = append(cells, fmt.Sprintf("%.2f", c[name]))
		}
		t.row(cells...)
	}
	t.end()
	return nil
}

// traced counts the system calls of pid while fn runs, by name.
func (b *bench) traced(pid int, fn func() error) (map[string]float64, error) {
	out := filepath.Join(b.dir, "strace")
	cmd := exec.Command("strace", "-f", "-c", "-o", out, "-p", strconv.Itoa(pid))
	said, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(said)
	attached := false
	for !attached && lines.Scan() {
		attached = strings.Contains(lines.Text(), "attached")
	}
	if !attached {
		return nil, errors.Join(errors.New("strace did not attach"), cmd.Wait())
	}
	err = fn()
	_ = cmd.Process.Signal(syscall.SIGINT)
	for lines.Scan() { // to its end
	}
	_ = cmd.Wait() // it ends with our signal
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(out)
	if err != nil {
		return nil, err
	}
	counts := map[string]float64{}
	for l := range strings.Lines(string(text)) {
		// % time, seconds, usecs/call, calls, errors (may be missing), name
		words := strings.Fields(l)
		if len(words) < 5 {
			continue
		}
		if n, err := strconv.ParseFloat(words[3], 64); err == nil && words[len(words)-1] != "total" {
			counts[words[len(words)-1]] = n
		}
	}
	return counts, nil
}
