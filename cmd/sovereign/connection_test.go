package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/server"
	"github.com/sovereign-run/sovereign/store/bolt"
)

// newStore makes a store with one actor, and returns its folder.
func newStore(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	db, err := bolt.Open(dir, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	box, err := mailbox.Open(t.Context(), db, leasesOf(db), mailbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := box.SetActors(t.Context(), []mailbox.Actor{{Name: "job", Mailbox: true}}); err != nil {
		t.Fatal(err)
	}
	if err := (&openedStore{db: db, box: box}).Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// sovereign runs one command line as the program does.
func sovereign(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	status = run(t.Context(), args, strings.NewReader(""), &out, &errs)
	return status, out.String(), errs.String()
}

// TestConnect_WaitsForTheLock: a command that meets another one waits for it; one
// that meets a lock which nobody gives up is refused, store_locked, after 10 seconds
// and not before.
func TestConnect_WaitsForTheLock(t *testing.T) {
	for name, held := range map[string]time.Duration{"for a moment": 100 * time.Millisecond, "for good": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := newStore(t)
			db, err := bolt.Open(dir, bolt.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if held > 0 {
				timer := time.AfterFunc(held, func() { db.Close() })
				defer timer.Stop()
			} else {
				defer db.Close()
			}
			began := time.Now()
			status, out, errs := sovereign(t, "send", "job", "x", "--data", dir)
			took := time.Since(began)
			switch {
			case held > 0 && (status != exitDone || out != "m1\n"):
				t.Errorf("status %d, %q, %q", status, out, errs)
			case held == 0 && (status != exitRefused || !strings.Contains(errs, "[store_locked]") || took < connectFor-2*longestWait):
				t.Errorf("status %d after %v, %q", status, took, errs)
			}
		})
	}
}

// TestConnect_ReadersShareAStoppedStore: commands that only read change no byte of
// the store (P3.10) and do not wait for each other. Report 4.6 #63: an open for reading
// hung while the daemon ran; beside a running supervisor, scripts backup and frozen.
func TestConnect_ReadersShareAStoppedStore(t *testing.T) {
	dir := newStore(t)
	if status, _, errs := sovereign(t, "send", "job", "x", "--data", dir); status != 0 {
		t.Fatal(errs)
	}
	before := digest(t, dir)
	reader, err := bolt.Open(dir, bolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	for _, args := range [][]string{{"inbox"}, {"inbox", "show", "m1"}, {"status"}, {"events"}, {"lease", "list"}, {"verify"}} {
		if status, _, errs := sovereign(t, append(args, "--data", dir)...); status != 0 {
			t.Errorf("%v: status %d, %s", args, status, errs)
		}
	}
	if after := digest(t, dir); after != before {
		t.Error("a command that only reads has changed the store")
	}
}

// digest is what the files of a store hold.
func digest(t *testing.T, dir string) string {
	t.Helper()
	h := sha256.New()
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(filepath.Join(dir, path))
		fmt.Fprintf(h, "%s %d\n", path, len(b))
		h.Write(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// TestOpenAlone_WaitsForADeadSupervisorsChild: a child that was just being forked
// when its supervisor was killed keeps, for a moment, the lock and the sockets of a
// store: connections are taken by the kernel, and end without a word. The next
// supervisor waits for that moment. Take any connection for a supervisor and this
// fails.
func TestOpenAlone_WaitsForADeadSupervisorsChild(t *testing.T) {
	dir := newStore(t)
	db, err := bolt.Open(dir, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	socket, err := server.ListenControl(dir)
	if err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(200*time.Millisecond, func() {
		socket.Close()
		db.Close()
	})
	defer timer.Stop()
	next, err := openAlone(t.Context(), dir, bolt.Options{})
	if err != nil {
		t.Fatalf("open the store of a supervisor that is dead: %v", err)
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
}
