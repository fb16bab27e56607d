package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store/bolt"
)

// TestServe_StopsWhenItCannotKnowItsLastWrite holds P4.10: once a commit has failed
// with an unknown outcome, everything stops by itself, the exit status is 1, and
// one clear message says why, without a stack trace.
func TestServe_StopsWhenItCannotKnowItsLastWrite(t *testing.T) {
	var broken atomic.Bool
	file, db := fileAndStore(t, "{job: {command: [sleep, '1000'], mode: worker}}", func(commit func() error) error {
		if err := commit(); err != nil {
			return err
		}
		if broken.Load() {
			return errors.New("input/output error") // stored, but who knows
		}
		return nil
	})
	out := make(lineWriter, 64)
	var errs bytes.Buffer
	o := runOptions{shared: &shared{}, logFormat: "text"}
	ended := make(chan error, 1)
	log := slog.New(newTextLog(out, slog.LevelInfo, false))
	go func() {
		ended <- o.serve(context.Background(), streams{out: out, err: &errs}, newNotices(&errs, nil), file, source{}, db, log)
	}()
	out.await(t, "process started")
	broken.Store(true)
	s := shared{data: file.Data}
	_ = s.write(t.Context(), "actor.pause", map[string]string{"actor": "job"}, nil)
	err := <-ended
	if !refusal.Has(err, refusal.OutcomeUnknown) || statusOf(err) != exitFailed {
		t.Errorf("serve ended with %v, status %d", err, statusOf(err))
	}
	var told bytes.Buffer
	report(err, false, nil, &told)
	if !strings.Contains(told.String(), "[outcome_unknown]") || strings.Contains(told.String(), "goroutine") || strings.Count(told.String(), "\n") > 3 {
		t.Errorf("told %q", told.String())
	}
	if _, err := os.Stat(filepath.Join(file.Data, "control.sock")); err == nil {
		t.Error("the socket is left")
	}
}

// fileAndStore are an actors.yaml in a new folder, and its store, open until the test
// ends, with a hook around its commits.
func fileAndStore(t *testing.T, actors string, commit func(commit func() error) error) (*config.File, *bolt.DB) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "actors.yaml")
	if err := os.WriteFile(path, []byte("version: 1\nactors: "+actors+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	file, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	db, err := bolt.Open(file.Data, bolt.Options{Commit: commit})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return file, db
}

// A lineWriter hands on what is written to it.
type lineWriter chan string

func (l lineWriter) Write(b []byte) (int, error) {
	select {
	case l <- string(b):
	default:
	}
	return len(b), nil
}

func (l lineWriter) await(t *testing.T, text string) {
	t.Helper()
	for line := range l {
		if strings.Contains(line, text) {
			return
		}
	}
}
