package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain makes this test binary the program too: scripts run it as sovereign.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"sovereign": main, "sovereign-breaks": breaks})
}

// TestScripts runs the scripts of testdata/script: real supervisors, real
// children, real signals. Each begins with the property or case that it holds.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Setup:               setUp,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"waitready": waitReady,
			"json":      jsonIs,
			"status":    exitStatus,
			"lines":     countLines,
			"gone":      processGone,
			"waitfile":  waitFile,
			"httpget":   httpGet,
			"smalldisk": smallDisk,
		},
		Condition: func(name string) (bool, error) {
			if name != "mount" {
				return false, fmt.Errorf("there is no condition %s", name)
			}
			return canMount(), nil
		},
	})
}

type notifyKey struct{}

// setUp gives each script a socket to which its supervisors report, as they would
// to systemd: that is the event that waitready waits for.
func setUp(env *testscript.Env) error {
	folder, err := os.MkdirTemp("", "sv") // a short path, whatever $WORK is
	if err != nil {
		return err
	}
	socket := filepath.Join(folder, "n")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return err
	}
	env.Defer(func() {
		_ = conn.Close()
		_ = os.RemoveAll(folder)
	})
	ready := make(chan struct{}, 64)
	env.Values[notifyKey{}] = ready
	go readStates(conn, ready) // ends when conn is closed
	env.Setenv("NOTIFY_SOCKET", socket)
	env.Setenv("GORACE", "atexit_sleep_ms=0")
	env.Setenv("HOME", env.WorkDir)
	env.Setenv("NO_COLOR", "")
	return nil
}

// testLimit bounds every wait of a script: beyond it something is broken.
const testLimit = 2 * time.Minute

// waitReady waits until a supervisor that the script started says READY.
func waitReady(ts *testscript.TestScript, neg bool, args []string) {
	select {
	case <-ts.Value(notifyKey{}).(chan struct{}):
	case <-time.After(testLimit):
		ts.Fatalf("no supervisor became ready")
	}
}

// readStates reads what supervisors tell until conn is closed. STOPPING takes back
// a READY that nobody waited for, so that waitready waits for the next one.
func readStates(conn *net.UnixConn, ready chan struct{}) {
	b := make([]byte, 512)
	reloading := false
	for {
		n, err := conn.Read(b)
		if err != nil {
			return
		}
		switch {
		case strings.HasPrefix(string(b[:n]), "RELOADING=1"):
			reloading = true
		case strings.HasPrefix(string(b[:n]), "READY=1"):
			if reloading {
				reloading = false // it was ready before
				continue
			}
			ready <- struct{}{}
		case strings.HasPrefix(string(b[:n]), "STOPPING=1"):
			select {
			case <-ready:
			default:
			}
		}
	}
}

// jsonIs compares a value of the last command's output: json PATH WANT, where
// PATH is names and indexes with dots, and len at its end is a length.
func jsonIs(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: json PATH WANT")
	}
	var v any
	line := strings.TrimSpace(ts.ReadFile("stdout"))
	d := json.NewDecoder(strings.NewReader(line))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		ts.Fatalf("the output is no JSON: %v\n%s", err, line)
	}
	got, err := walk(v, strings.Split(args[0], "."))
	if err != nil {
		ts.Fatalf("%s: %v\n%s", args[0], err, line)
	}
	if (got == args[1]) == neg {
		ts.Fatalf("%s is %s, want %s\n%s", args[0], got, args[1], line)
	}
}

func walk(v any, path []string) (string, error) {
	for _, step := range path {
		switch at := v.(type) {
		case map[string]any:
			next, ok := at[step]
			if !ok {
				return "absent", nil
			}
			v = next
		case []any:
			if step == "len" {
				return strconv.Itoa(len(at)), nil
			}
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(at) {
				return "", fmt.Errorf("no element %s of %d", step, len(at))
			}
			v = at[i]
		default:
			return "", fmt.Errorf("%v has no %s", v, step)
		}
	}
	if s, ok := v.(string); ok {
		return strings.ReplaceAll(s, "\n", `\n`), nil
	}
	text, err := json.Marshal(v)
	return string(text), err
}

// exitStatus runs a command and compares its exit status: status N COMMAND….
func exitStatus(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: status N COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if exit, ok := err.(interface{ ExitCode() int }); ok {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// countLines compares the number of lines of a file: lines FILE N.
func countLines(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: lines FILE N")
	}
	got := strings.Count(ts.ReadFile(args[0]), "\n")
	if want := args[1]; (strconv.Itoa(got) == want) == neg {
		ts.Fatalf("%s has %d lines, want %s\n%s", args[0], got, want, ts.ReadFile(args[0]))
	}
}

// waitFile waits until a file exists: what a child does to say where it is.
func waitFile(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: waitfile FILE")
	}
	path := ts.MkAbs(args[0])
	watcher, err := watchFolder(filepath.Dir(path))
	ts.Check(err)
	defer watcher.Close()
	limit := time.After(testLimit)
	for {
		if _, err := os.Stat(path); err == nil {
			return
		}
		select {
		case <-watcher.Events:
		case <-limit:
			ts.Fatalf("%s did not appear", args[0])
		}
	}
}

// processGone waits until the process whose number a file holds has ended.
func processGone(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: gone PIDFILE")
	}
	pid, err := strconv.Atoi(strings.TrimSpace(ts.ReadFile(args[0])))
	ts.Check(err)
	if alive := waitGone(pid, testLimit); alive != neg {
		ts.Fatalf("process %d: alive is %v", pid, alive)
	}
}

// httpGet reads a page from a server on a socket, as the output of a command:
// httpget SOCKET PATH.
func httpGet(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: httpget SOCKET PATH")
	}
	client := http.Client{Timeout: testLimit, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", args[0])
		}}}
	reply, err := client.Get("http://socket" + args[1])
	if err != nil {
		ts.Fatalf("get %s: %v", args[1], err)
	}
	defer reply.Body.Close()
	page, err := io.ReadAll(reply.Body)
	if err != nil {
		ts.Fatalf("get %s: %v", args[1], err)
	}
	if (reply.StatusCode == http.StatusOK) == neg {
		ts.Fatalf("get %s: %s\n%s", args[1], reply.Status, page)
	}
	ts.Check(os.WriteFile(ts.MkAbs("page"), page, 0o600))
	ts.Check(ts.Exec("cat", "page"))
}
