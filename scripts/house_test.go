// Package scripts_test holds the rules of the house that no single package can
// hold for itself.
package scripts_test

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/sovereign-run/sovereign/"

// allowed is the one-way street of imports, and the diagram of the house:
//
//	cmd/sovereign → supervisor → recovery → mailbox → fence → store
//	              → server ───────────────↗
//
// refusal, protocol and config are leaves that others may use; store/bolt is the
// engine, which only the program opens. A package that is not listed fails
// the test.
var allowed = map[string][]string{
	"refusal":               {},
	"guard":                 {},
	"descriptor":            {},
	"interrupt":             {},
	"protocol":              {"refusal"},
	"config":                {"refusal"},
	"store":                 {},
	"store/bolt":            {"store", "store/wal", "refusal"},
	"store/wal":             {},
	"store/storetest":       {"store"},
	"store/powercut":        {},
	"store/powercut/lazyfs": {},
	"fence":                 {"store", "refusal"},
	"mailbox":               {"fence", "store", "protocol", "refusal"},
	"mailbox/mailboxtest":   {"mailbox", "fence", "store", "store/bolt"},
	"recovery":              {"mailbox", "fence", "protocol", "refusal"},
	"supervisor": {"recovery", "mailbox", "fence", "config", "protocol", "refusal",
		"supervisor/process", "supervisor/capture", "descriptor"},
	"supervisor/process": {"descriptor"},
	"supervisor/capture": {"descriptor"},
	"server":             {"mailbox", "fence", "protocol", "refusal", "config", "descriptor"},
	"metrics":            {"server", "supervisor", "mailbox", "protocol"},
	"worker":             {"protocol", "refusal"},
	"worker/python":      {},
	"conformance":        {"protocol", "refusal"},
	"cmd/sovereign": {"server", "metrics", "supervisor", "supervisor/process", "supervisor/capture", "recovery", "mailbox", "fence",
		"store/bolt", "worker", "worker/python", "conformance", "protocol", "config", "refusal", "descriptor", "interrupt"},
}

// only says which packages may import what lies outside.
var only = map[string][]string{
	"github.com/spf13/cobra":    {"cmd/sovereign"},
	"github.com/spf13/pflag":    {"cmd/sovereign"},
	"github.com/oklog/run":      {"cmd/sovereign"},
	"go.etcd.io/bbolt":          {"store/bolt"},
	"github.com/hanwen/go-fuse": {"store/powercut/lazyfs"},
	"go.yaml.in/yaml/v4":        {"config"},
	"github.com/prometheus":     {"metrics"},
	"testing":                   {"mailbox/mailboxtest", "store/storetest"},
}

type pkg struct {
	ImportPath string
	Imports    []string
}

func list(t *testing.T, goos string) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "./...")
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), "GOOS="+goos)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var all []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// Imports go one way, on every system that we build for.
func TestImports_GoOneWay(t *testing.T) {
	for _, goos := range []string{"linux", "darwin"} {
		for _, p := range list(t, goos) {
			name := strings.TrimPrefix(p.ImportPath, module)
			if outside(name) {
				continue
			}
			may, known := allowed[name]
			if !known {
				t.Errorf("%s is not in the diagram of the house (scripts/house_test.go)", name)
				continue
			}
			for _, imp := range p.Imports {
				if ours, ok := strings.CutPrefix(imp, module); ok && !slices.Contains(may, ours) {
					t.Errorf("%s: %s imports %s, which goes against the street", goos, name, ours)
				}
				for outside, who := range only {
					if (imp == outside || strings.HasPrefix(imp, outside+"/")) && !slices.Contains(who, name) {
						t.Errorf("%s: %s imports %s, which only %v may", goos, name, imp, who)
					}
				}
			}
		}
	}
}

// A permission that nobody uses would let a leak through unseen.
func TestImports_NoneIsAllowedInVain(t *testing.T) {
	used := map[string]map[string]bool{}
	for _, goos := range []string{"linux", "darwin"} {
		for _, p := range list(t, goos) {
			name := strings.TrimPrefix(p.ImportPath, module)
			for _, imp := range p.Imports {
				if ours, ok := strings.CutPrefix(imp, module); ok {
					if used[name] == nil {
						used[name] = map[string]bool{}
					}
					used[name][ours] = true
				}
			}
		}
	}
	for name, may := range allowed {
		for _, imp := range may {
			if !used[name][imp] {
				t.Errorf("%s may import %s, and does not: take it out of the diagram of the house", name, imp)
			}
		}
	}
}

// The page of dependencies names every module that the program and its tests use
// themselves.
func TestDependencies_AreExplained(t *testing.T) {
	mod, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../docs/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mod)) {
		fields := strings.Fields(line)
		if len(fields) != 2 || !strings.Contains(fields[0], ".") {
			continue // indirect ones have a third field
		}
		if !bytes.Contains(page, []byte(fields[0])) {
			t.Errorf("docs/dependencies.md does not say what %s is for", fields[0])
		}
	}
}

// outside says that a package is no part of the program: it may import any of ours.
func outside(name string) bool {
	return strings.HasPrefix(name+"/", "examples/") || strings.HasPrefix(name+"/", "scripts/")
}

// Processes are started in one place: os/exec is for tests, examples and measuring.
func TestImports_NoExec(t *testing.T) {
	for _, p := range list(t, "linux") {
		name := strings.TrimPrefix(p.ImportPath, module)
		if slices.Contains(p.Imports, "os/exec") && !outside(name) && name != "cmd/sovereign" {
			t.Errorf("%s imports os/exec: children are started by supervisor/process alone", name)
		}
	}
}

// The README stays short enough to be read.
func TestReadme_Short(t *testing.T) {
	b, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(b, []byte("\n")); n >= 150 {
		t.Errorf("README.md has %d lines, it should stay under 150", n)
	}
}

// Links between our own documents lead somewhere.
func TestDocs_LinksResolve(t *testing.T) {
	files, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	examples, _ := filepath.Glob("../examples/*/README.md")
	for _, f := range append(append(files, examples...), "../README.md", "../CONTRIBUTING.md", "../CHANGELOG.md") {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, part := range strings.Split(string(b), "](")[1:] {
			link, _, _ := strings.Cut(part, ")")
			link, _, _ = strings.Cut(link, "#")
			if link == "" || strings.Contains(link, "://") || strings.ContainsAny(link, " \n`") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(f), link)); err != nil {
				t.Errorf("%s links to %s: %v", f, link, err)
			}
		}
	}
}
