//go:build ignore

// The program behind scripts/mutate.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

const table = "scripts/mutations.txt"

// patience is how long the tests of one edit may take. Tests that hang have
// noticed it.
const patience = 90 * time.Second

// building is how long it may take to build them, on a machine that is busy.
const building = 5 * time.Minute

// A mutation is one edit and the tests that must notice it.
type mutation struct {
	name, file string
	pkg, run   string
	old, new   string // whole lines
}

// parse reads the table:
//
//	== NAME FILE
//	PACKAGE REGEXP
//	-a line of the file as it is
//	+a line in its place
func parse(text string) ([]mutation, error) {
	var all []mutation
	for n, line := range strings.Split(text, "\n") {
		bad := func(why string) error { return fmt.Errorf("%s:%d: %s", table, n+1, why) }
		if strings.HasPrefix(line, "== ") {
			f := strings.Fields(line)
			if len(f) != 3 {
				return nil, bad("an edit starts with == NAME FILE")
			}
			if slices.ContainsFunc(all, func(m mutation) bool { return m.name == f[1] }) {
				return nil, bad("there are two edits named " + f[1])
			}
			all = append(all, mutation{name: f[1], file: f[2]})
			continue
		}
		if line == "" || line[0] == '#' {
			continue
		}
		if len(all) == 0 {
			return nil, bad("a line before the first edit")
		}
		m := &all[len(all)-1]
		switch {
		case line[0] == '-':
			m.old += line[1:] + "\n"
		case line[0] == '+':
			m.new += line[1:] + "\n"
		default:
			var ok bool
			if m.pkg, m.run, ok = strings.Cut(line, " "); !ok {
				return nil, bad("neither - nor + nor PACKAGE REGEXP")
			}
		}
	}
	for _, m := range all {
		if m.old == "" || m.pkg == "" {
			return nil, fmt.Errorf("%s: %s is not complete", table, m.name)
		}
	}
	return all, nil
}

// apply returns content with the edit made. The old text must be there once.
func (m mutation) apply(content string) (string, error) {
	switch n := strings.Count("\n"+content, "\n"+m.old); n {
	case 1:
		at := strings.Index("\n"+content, "\n"+m.old)
		return content[:at] + m.new + content[at+len(m.old):], nil
	case 0:
		return "", fmt.Errorf("%s has changed: the old text is not there; see whether the edit still makes sense, and bring it up to date", m.file)
	default:
		return "", fmt.Errorf("the old text is %d times in %s; take more lines", n, m.file)
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, names []string) error {
	text, err := os.ReadFile(table)
	if err != nil {
		return err
	}
	all, err := parse(string(text))
	if err != nil {
		return err
	}
	if all, err = choose(all, names); err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)

	// One copy for each worker; -trimpath makes them share what is built.
	workers := max(1, min(runtime.NumCPU(), len(all), 4))
	todo := make(chan mutation)
	var mu sync.Mutex // guards what follows, and the table's lines
	var survived, broken []string
	var wg sync.WaitGroup
	var failed error
	for i := range workers {
		tree := filepath.Join(temp, fmt.Sprint(i))
		if err := copyTree(".", tree); err != nil {
			return err
		}
		wg.Go(func() {
			for m := range todo {
				start := time.Now()
				verdict, detail := try(ctx, tree, m)
				mu.Lock()
				fmt.Printf("%-9s %-30s %5.1fs  %s\n", verdict, m.name, time.Since(start).Seconds(), detail)
				switch verdict {
				case "caught":
				case "SURVIVED":
					survived = append(survived, m.name)
				default:
					broken = append(broken, m.name)
				}
				mu.Unlock()
			}
		})
	}
	// The tests must hold without an edit: else that they fail says nothing.
	if failed = holds(ctx, filepath.Join(temp, "0"), all); failed == nil {
		for _, m := range all {
			if ctx.Err() != nil {
				break
			}
			todo <- m
		}
	}
	close(todo)
	wg.Wait()
	switch {
	case failed != nil:
		return failed
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	fmt.Printf("\n%d edits: %d caught, %d survived, %d could not be tried\n", len(all), len(all)-len(survived)-len(broken), len(survived), len(broken))
	if len(survived)+len(broken) > 0 {
		return fmt.Errorf("not caught: %s", strings.Join(append(survived, broken...), ", "))
	}
	return nil
}

func choose(all []mutation, names []string) ([]mutation, error) {
	if len(names) == 0 {
		return all, nil
	}
	var out []mutation
	for _, name := range names {
		n := len(out)
		for _, m := range all {
			if m.name == name || strings.HasSuffix(name, "-") && strings.HasPrefix(m.name, name) {
				out = append(out, m)
			}
		}
		if len(out) == n {
			return nil, fmt.Errorf("there is no edit named %s in %s", name, table)
		}
	}
	return out, nil
}

// copyTree copies the sources, and no history.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && path != "." && strings.HasPrefix(e.Name(), "."):
			return fs.SkipDir
		case e.IsDir():
			return os.MkdirAll(filepath.Join(to, path), 0o755)
		case !e.Type().IsRegular():
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, path), b, info.Mode().Perm())
	})
}

// holds runs every test that is named, without an edit.
func holds(ctx context.Context, tree string, all []mutation) error {
	runs := map[string][]string{}
	for _, m := range all {
		runs[m.pkg] = append(runs[m.pkg], "("+m.run+")")
	}
	for pkg, res := range runs {
		out, err := test(ctx, tree, pkg, strings.Join(res, "|"), "-v")
		if err != nil {
			return fmt.Errorf("the tests of %s do not hold without an edit: %w\n%s", pkg, err, out)
		}
		// A pattern that matches nothing catches nothing.
		for _, re := range res {
			if !regexp.MustCompile(`(?m)^=== RUN +\S*` + re).Match(out) {
				return fmt.Errorf("no test of %s matches %s", pkg, re)
			}
		}
	}
	return nil
}

func try(ctx context.Context, tree string, m mutation) (verdict, detail string) {
	path := filepath.Join(tree, m.file)
	before, err := os.ReadFile(path)
	if err != nil {
		return "BROKEN", err.Error()
	}
	after, err := m.apply(string(before))
	if err != nil {
		return "BROKEN", err.Error()
	}
	if err := os.WriteFile(path, []byte(after), 0o644); err != nil {
		return "BROKEN", err.Error()
	}
	defer os.WriteFile(path, before, 0o644)
	out, err := test(ctx, tree, m.pkg, m.run)
	switch {
	case ctx.Err() != nil:
		return "STOPPED", ""
	case err == nil:
		return "SURVIVED", m.pkg + " " + m.run
	case bytes.Contains(out, []byte("[build failed]")), bytes.Contains(out, []byte("[setup failed]")):
		return "BROKEN", "it does not compile: " + firstLine(out)
	case errors.Is(err, context.DeadlineExceeded):
		return "BROKEN", "it is not done within " + (patience + building).String() + ": the machine is too busy"
	case bytes.Contains(out, []byte("panic: test timed out")):
		return "caught", "the tests hang"
	}
	return "caught", failedTest(out)
}

func test(ctx context.Context, tree, pkg, run string, more ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience+building, context.DeadlineExceeded)
	defer cancel()
	args := append([]string{"-n", "5", "go", "test", "-trimpath", "-vet=off", "-count=1", "-failfast", "-timeout", patience.String(), "-run", run}, more...)
	args = append(args, pkg)
	if usesRapid(filepath.Join(tree, pkg)) {
		// What fails is enough; the smallest example is for people.
		args = append(args, "-rapid.shrinktime=0s", "-rapid.nofailfile")
	}
	cmd := exec.CommandContext(ctx, "nice", args...)
	cmd.Dir = tree
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return out, err
}

// usesRapid reports whether the tests of a package take rapid's flags.
func usesRapid(dir string) bool {
	files, _ := filepath.Glob(filepath.Join(dir, "*_test.go"))
	return slices.ContainsFunc(files, func(name string) bool {
		b, err := os.ReadFile(name)
		return err == nil && bytes.Contains(b, []byte(`"pgregory.net/rapid"`))
	})
}

func firstLine(out []byte) string {
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, ".go:") {
			return strings.TrimSpace(line)
		}
	}
	return strings.TrimSpace(string(out[:min(len(out), 200)]))
}

// failedTest names the test that noticed.
func failedTest(out []byte) string {
	for line := range strings.Lines(string(out)) {
		if name, ok := strings.CutPrefix(line, "--- FAIL: "); ok {
			name, _, _ = strings.Cut(name, " ")
			return name
		}
		if strings.HasPrefix(line, "panic: ") {
			return strings.TrimSpace(line)
		}
	}
	return strings.TrimSpace(string(out[max(0, len(out)-80):]))
}
