package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sovereign-run/sovereign/config"
)

func mustWrite(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// What cannot be read is refused in the same form, and a pipe without a writer
// is not waited on: open it without O_NONBLOCK and this hangs.
func TestLoad_RefusesWhatIsNoReadableFile(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("folder", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo("pipe", 0o644); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, "large", "#"+strings.Repeat("x", 1<<20))
	mustWrite(t, "empty", "")
	mustWrite(t, "secret", example)
	if err := os.Chmod("secret", 0); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"nowhere":   "nowhere: there is no such file",
		"folder":    "folder: it is a directory, allowed: a file",
		"folder/x":  "folder/x: there is no such file",
		"empty/x":   "empty/x: it cannot be read: not a directory",
		"pipe":      "pipe: it is a pipe, socket or device, allowed: a regular file",
		"/dev/zero": "/dev/zero: it is a pipe, socket or device, allowed: a regular file",
		"large":     "large: the file is too large, allowed: at most 1MiB",
		"empty":     "empty:1:1: the file is empty, allowed: a mapping with at least one actor under actors",
		"":          ": there is no such file",
		"secret":    "secret: it cannot be read: permission denied",
	} {
		if path == "secret" && os.Getuid() == 0 {
			continue // root reads everything
		}
		_, err := config.Load(path)
		if _, ok := errors.AsType[*config.Problems](err); !ok || err.Error() != want {
			t.Errorf("%s: got %v, want %s", path, err, want)
		}
	}
}

// The largest file that is allowed is read.
func TestLoad_ReadsUpToTheBound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "actors.yaml")
	mustWrite(t, path, example+"#"+strings.Repeat("x", 1<<20-len(example)-1))
	if _, err := config.Load(path); err != nil {
		t.Error(err)
	}
}

// However deep or wide the file, it is refused in a moment and without a panic.
func TestParse_SurvivesHostileShapes(t *testing.T) {
	const most = 1 << 16
	fill := func(head, unit, tail string) string {
		return head + strings.Repeat(unit, (most-len(head)-len(tail))/len(unit)) + tail
	}
	var many strings.Builder
	many.WriteString("actors:\n")
	for i := range 1_500 {
		fmt.Fprintf(&many, "  a%d: {after: [a0]}\n", i)
	}
	strange := make([]string, 500)
	for i := range strange {
		strange[i] = fmt.Sprintf("q%d", i)
	}
	for name, text := range map[string]string{
		"deep lists":    fill("x: ", "[", ""),
		"deep mappings": fill("x: ", "{a: ", ""),
		"deep blocks":   fill("x:\n", "- ", ""),
		"many keys":     fill("actors: {a: {", "? , ", "}}"),
		"long after":    fill("actors: {a: {command: x, after: [", "q, ", "]}}"),
		"many actors":   many.String(),
		"many unknown":  "defaults: {after: [" + strings.Join(strange, ", ") + "]}\n" + strings.ReplaceAll(many.String(), "{after: [a0]}", "{}"),
		"long scalar":   fill("actors: {a: {mode: ", "x", "}}"),
		"bomb":          "a: &a [x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: [*c, *c]\nself: &s [*s]\n",
	} {
		if _, err := config.Parse("actors.yaml", []byte(text)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// An env_file: what its lines mean. Values stand as they are written.
func TestEnvFile_ReadsLines(t *testing.T) {
	folder := t.TempDir()
	mustWrite(t, filepath.Join(folder, ".env"), "\ufeff# a comment\n\n  \t\n   # another\n"+
		"A=1\r\nB= two words  # no comment\nC=\"in quotes # $HOME \\n\"\nD='it is \"so\"'\nE=\nF=a=b\nG=\"\"\nH=it's\n"+
		"I={\"json\": \"yes\"}\nO=overridden\nlast=yes")
	f := mustParse(t, filepath.Join(folder, "actors.yaml"),
		"defaults: {env: {O: defaults}}\nactors:\n  a: {command: x, env_file: .env, env: {Z: z}}\n  b: {command: x, env_file: .env}\n")
	want := map[string]string{
		"A": "1", "B": " two words  # no comment", "C": `in quotes # $HOME \n`, "D": `it is "so"`, "E": "", "F": "a=b",
		"G": "", "H": "it's", "I": `{"json": "yes"}`, "O": "defaults", "last": "yes",
	}
	for _, a := range f.Actors {
		for k, v := range want {
			if a.Env[k] != v {
				t.Errorf("%s: %s: got %q, want %q", a.Name, k, a.Env[k], v)
			}
		}
	}
	if a, b := f.Actors[0].Env, f.Actors[1].Env; len(a) != len(want)+1 || len(b) != len(want) {
		t.Errorf("got %d and %d variables: %v, %v", len(a), len(b), a, b)
	}
}

// Mistakes in an env_file have its own path and place, once however many
// actors read it, and no value is repeated (L8).
func TestEnvFile_RefusesAtItsOwnPlace(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("conf", 0o755); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, "conf/x.env", "OK=1\nexport A=s3cret\nB\n1C=s3cret\nSOVEREIGN_X=s3cret\nOK=s3cret\n"+
		"D=\"s3cret\nE='s3'cret'\nF=s3cret\xff\nG=s3cret\x00\nH =s3cret\n")
	_, err := config.Parse("conf/actors.yaml", []byte(`actors:
  a: {command: x, env_file: x.env, replicas: 0}
  b: {command: x, env_file: ./x.env}
`))
	const name = ` is no name of a variable, allowed: letters, digits and _, not beginning with a digit`
	const quotes = `the quotes do not surround the whole value, allowed: none, or one at each end and none of the same kind inside`
	want := strings.Join([]string{
		`conf/actors.yaml:2:46: replicas: "0" is too small, allowed: a whole number from 1 to 1024`,
		`conf/x.env:2:1: the name "export A"` + name + `; without export`,
		`conf/x.env:3:1: there is no = in the line, allowed: NAME=VALUE, or # and a comment`,
		`conf/x.env:4:1: the name "1C"` + name,
		`conf/x.env:5:1: the name "SOVEREIGN_X" is one of the supervisor's own, allowed: names that do not begin with SOVEREIGN_`,
		`conf/x.env:6:1: OK is given twice, first in line 1, allowed: once`,
		`conf/x.env:7:3: ` + quotes,
		`conf/x.env:8:3: ` + quotes,
		`conf/x.env:9:9: a byte is no UTF-8, allowed: text in UTF-8`,
		`conf/x.env:10:9: there is a NUL character, allowed: any other`,
		`conf/x.env:11:1: the name "H "` + name,
	}, "\n")
	if err == nil || err.Error() != want {
		t.Errorf("got:\n%v\nwant:\n%s", err, want)
	}
}

// An env_file that cannot be read is a problem of the line that names it.
func TestEnvFile_RefusesWhatIsNoFile(t *testing.T) {
	folder := t.TempDir()
	for name, want := range map[string]string{
		"/dev/zero": "env_file /dev/zero: it is a pipe, socket or device, allowed: a regular file",
		".":         "env_file " + folder + ": it is a directory, allowed: a file",
	} {
		_, err := config.Parse(filepath.Join(folder, "a"), []byte("actors:\n  a: {command: x, env_file: "+name+"}\n"))
		if want := filepath.Join(folder, "a") + ":2:29: " + want; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	mustWrite(t, filepath.Join(folder, "large.env"), strings.Repeat("#", 1<<20+1))
	if _, err := config.Parse(filepath.Join(folder, "a"), []byte("actors: {a: {command: x, env_file: large.env}}")); err == nil ||
		err.Error() != filepath.Join(folder, "large.env")+": the file is too large, allowed: at most 1MiB" {
		t.Errorf("got %v", err)
	}
}
