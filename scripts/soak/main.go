package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == lifeArgument {
		if err := live(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	period := flag.Duration("for", 30*time.Second, "how long to break things; to drain and to check comes on top")
	seed := flag.Uint64("seed", rand.Uint64N(1<<32), "what decides; random unless given")
	binary := flag.String("binary", "", "the program to drive (default: it is built)")
	keep := flag.Bool("keep", false, "keep the folder, whatever the outcome")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	clean, err := soak(ctx, os.Stdout, *binary, *seed, *period, *keep)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
	}
	if err != nil || !clean {
		os.Exit(1)
	}
}

// soak makes one run and reports on w. clean says that nothing was violated. The
// folder of a run that was not clean is kept.
func soak(ctx context.Context, w io.Writer, binary string, seed uint64, period time.Duration, keep bool) (clean bool, err error) {
	folder, err := os.MkdirTemp("", "sovereign-soak-")
	if err != nil {
		return false, err
	}
	defer func() {
		if err == nil && clean && !keep {
			err = os.RemoveAll(folder)
			return
		}
		fmt.Fprintf(w, "kept %s; again: go run ./scripts/soak -for %s -seed %d\n", folder, period, seed)
	}()
	fmt.Fprintf(w, "seed %d, for %s\n", seed, period)
	if binary == "" {
		if binary, err = build(ctx, folder); err != nil {
			return false, err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return false, err
	}
	if err := writeFleet(folder, self); err != nil {
		return false, fmt.Errorf("write the fleet: %w", err)
	}
	began := time.Now()
	run := &Run{folder: folder, binary: binary, seed: seed}
	evidence, err := run.drive(ctx, period)
	if err != nil {
		return false, err
	}
	h := order(evidence)
	broken := time.Since(began)
	violations := judge(h)
	report(w, run.count, h)
	fmt.Fprintf(w, "took %s, of which %s to check\n", time.Since(began).Round(time.Millisecond), (time.Since(began) - broken).Round(time.Millisecond))
	if len(violations) == 0 {
		fmt.Fprintln(w, "clean")
		return true, nil
	}
	return false, errors.Join(accuse(w, h, violations), writeViolations(folder, h, violations))
}

// build builds the program of this module into folder.
func build(ctx context.Context, folder string) (string, error) {
	path := filepath.Join(folder, "sovereign")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, "github.com/sovereign-run/sovereign/cmd/sovereign")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the program: %w\n%s", err, out)
	}
	return path, nil
}

// report prints what was done and seen.
func report(w io.Writer, n Counts, h History) {
	fmt.Fprintf(w, "%d steps: %d kills and %d stops of workers; %d kills, %d early kills, %d stops and %d ends of the supervisor, %d starts\n",
		n.Steps, n.WorkerKills, n.WorkerStops, n.SupervisorKills, n.EarlyKills, n.SupervisorStops, n.SupervisorEnds, n.Starts)
	states, ends := map[string]int{}, map[string]int{}
	receipts := 0
	for _, m := range h.Messages {
		states[string(m.State)]++
		receipts += len(m.Receipts)
		for _, r := range m.Receipts {
			ends[r.Category]++
		}
	}
	methods := map[string]int{}
	for _, c := range h.calls {
		methods[c.Method]++
	}
	fmt.Fprintf(w, "%d processes, %d requests: %s\n", len(h.lives), len(h.calls), list(methods))
	fmt.Fprintf(w, "%d messages: %s; %d dropped; %d events\n", len(h.Messages), list(states), len(h.gone), len(h.Events))
	fmt.Fprintf(w, "%d receipts: %s\n", receipts, list(ends))
	fmt.Fprintf(w, "refusals: %s\n", list(h.refusals()))
}

// list is counts, the greatest first.
func list[K ~string](counts map[K]int) string {
	keys := slices.SortedFunc(maps.Keys(counts), func(a, b K) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	var parts []string
	for _, k := range keys {
		parts = append(parts, fmt.Sprintf("%d %s", counts[k], k))
	}
	return strings.Join(parts, ", ")
}

// shown bounds the violations that are printed; all of them are in the folder.
const shown = 10

func accuse(w io.Writer, h History, violations []Violation) error {
	_, err := fmt.Fprintf(w, "%d violations\n", len(violations))
	for i, v := range violations[:min(shown, len(violations))] {
		_, e := fmt.Fprintf(w, "%d. %s: %s\n", i+1, v.Rule, v.Text)
		err = errors.Join(err, e)
	}
	for _, line := range h.about(violations[0].Message) {
		_, e := fmt.Fprintf(w, "    %s\n", line)
		err = errors.Join(err, e)
	}
	return err
}

// writeViolations writes all violations with their histories into folder.
func writeViolations(folder string, h History, violations []Violation) error {
	var b strings.Builder
	for _, v := range violations {
		fmt.Fprintf(&b, "%s: %s\n", v.Rule, v.Text)
		for _, line := range h.about(v.Message) {
			fmt.Fprintf(&b, "    %s\n", line)
		}
	}
	return os.WriteFile(filepath.Join(folder, "violations.txt"), []byte(b.String()), 0o600)
}
