package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/sovereign-run/sovereign/config"
)

// Whatever the text, Parse answers: with problems that each stand on one line
// and inside the text, in order and not twice, or with a file that, written out
// in full, reads as the same file again.
func FuzzParse(f *testing.F) {
	for _, c := range problemCases {
		f.Add([]byte(c.text))
	}
	for _, text := range []string{example, allDefaults, scalars, "\ufeff" + example, strings.ReplaceAll(example, "\n", "\r")} {
		f.Add([]byte(text))
	}
	// env_file would read whatever the fuzzer names.
	f.Fuzz(func(t *testing.T, text []byte) {
		if strings.Contains(string(text), "env_file") || strings.Contains(string(text), `\`) {
			return
		}
		file, err := config.Parse("/d/actors.yaml", text)
		if err != nil {
			checkProblems(t, err, text)
			return
		}
		checkFile(t, file)
		out, err := yaml.Dump(config.Source(file))
		if err != nil {
			t.Fatal(err)
		}
		again, err := config.Parse("/d/actors.yaml", out)
		if err != nil {
			t.Fatalf("written out it is refused: %v\n%s", err, out)
		}
		byName := make(map[string]config.Actor)
		for _, a := range again.Actors {
			byName[a.Name] = a
		}
		for _, a := range file.Actors {
			b := byName[a.Name]
			if len(a.After) == 0 && len(b.After) == 0 {
				a.After, b.After = nil, nil
			}
			if len(a.Env) == 0 && len(b.Env) == 0 {
				a.Env, b.Env = nil, nil
			}
			if !reflect.DeepEqual(a, b) {
				t.Fatalf("written out it changes:\n%+v\n%+v\n%s", a, b, out)
			}
		}
		if again.Data != file.Data || len(again.Actors) != len(file.Actors) {
			t.Fatalf("written out it changes:\n%+v\n%+v\n%s", file, again, out)
		}
	})
}

func checkProblems(t *testing.T, err error, text []byte) {
	t.Helper()
	list, ok := errors.AsType[*config.Problems](err)
	if !ok || len(list.List) == 0 {
		t.Fatalf("no problems: %v", err)
	}
	if got := strings.Count(err.Error(), "\n") + 1; got != len(list.List) {
		t.Fatalf("%d problems on %d lines: %q", len(list.List), got, err)
	}
	var last config.Problem
	for _, p := range list.List {
		if p == last || p.Line < last.Line || p.Line == last.Line && p.Column < last.Column {
			t.Fatalf("%v after %v", p, last)
		}
		if p.Line < 1 || p.Column < 1 || p.Column > len(text)+1 {
			t.Fatalf("out of the text: %v", p)
		}
		last = p
	}
}

func checkFile(t *testing.T, file *config.File) {
	t.Helper()
	if !filepath.IsAbs(file.Data) || len(file.Actors) == 0 {
		t.Fatalf("%+v", file)
	}
	for _, a := range file.Actors {
		if len(a.Command) == 0 || a.Command[0] == "" || a.Replicas < 1 || !filepath.IsAbs(a.Cwd) || a.LeaseTTL <= 0 ||
			a.Backoff.Initial <= 0 || a.Backoff.Max < a.Backoff.Initial || a.Backoff.Factor < 1 ||
			a.Backoff.Jitter < 0 || a.Backoff.Jitter > 1 || a.Umask < -1 || a.Umask > 0o777 ||
			a.Mode != config.Daemon && (a.Timeout <= 0 || a.Retry.MaxAttempts < 1 || a.Claim.TTL <= 0 ||
				a.Inbox.MaxBody < 1 || a.Inbox.MaxBody > 1<<20 || a.Retry.Max < a.Retry.Initial) {
			t.Fatalf("out of range: %+v", a)
		}
		for name, value := range a.Env {
			if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(value, 0) ||
				strings.HasPrefix(name, "SOVEREIGN_") {
				t.Fatalf("%q=%q", name, value)
			}
		}
	}
}

// Whatever an env_file holds, Parse answers.
func FuzzEnvFile(f *testing.F) {
	for _, text := range []string{"A=1\n", "# x\n\nA=\"b\"\nB='c'\r\n", "export A=1", "A=\"\n", "\ufeffA=1", "A=\x00", "=\n", "A=\xff"} {
		f.Add([]byte(text))
	}
	folder := f.TempDir()
	path := filepath.Join(folder, "x.env")
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := config.Parse(filepath.Join(folder, "actors.yaml"), []byte("actors: {a: {command: x, env_file: x.env}}"))
		if err != nil {
			checkProblems(t, err, text)
			return
		}
		checkFile(t, file)
	})
}
