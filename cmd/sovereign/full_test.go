package main

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// A disk that is full is told once, and once that there is room again, however often
// small writes find some in between. Tell each change as it comes and this fails.
func TestTellFull_OnceUntilItIsCalm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		is, changed := false, make(chan struct{})
		ask := func() (bool, <-chan struct{}) {
			mu.Lock()
			defer mu.Unlock()
			return is, changed
		}
		set := func(full bool) {
			mu.Lock()
			close(changed)
			is, changed = full, make(chan struct{})
			mu.Unlock()
			synctest.Wait()
		}
		var told []bool
		tell := func(full bool) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, full)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		var state atomic.Bool
		go func() {
			done <- tellFull(ctx, &state, ask, tell)
		}()
		synctest.Wait()
		want := func(list ...bool) {
			t.Helper()
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(told, list) {
				t.Errorf("told %v, want %v", told, list)
			}
		}
		after := func(d time.Duration) { <-time.After(d); synctest.Wait() }
		want()
		set(true)
		want(true)
		for range 100 {
			set(false)
			after(calm / 2)
			set(true)
		}
		want(true)
		set(false)
		after(calm - 1)
		want(true)
		after(1)
		want(true, false)
		set(true)
		want(true, false, true)
		cancel()
		if err := <-done; err != context.Canceled {
			t.Errorf("got %v", err)
		}

		// The program that takes over goes on with what was told: begin with a state of
		// its own, and this fails.
		ctx, cancel = context.WithCancel(t.Context())
		go func() {
			done <- tellFull(ctx, &state, ask, tell)
		}()
		after(2 * calm)
		want(true, false, true)
		set(false)
		after(calm)
		want(true, false, true, false)
		cancel()
		<-done
	})
}

// A store whose disk is full says so where a person looks: one warning, one event, which
// is written from what is kept for that, and in the status. Record the event as one that
// can wait, or leave the status out of storage.Room, and this fails.
func TestServe_TellsThatTheDiskIsFull(t *testing.T) {
	var full atomic.Bool
	file, db := fileAndStore(t, "{job: {command: [sleep, '1000'], mode: daemon}, idle: {command: ['true']}}", func(commit func() error) error {
		if full.Swap(false) {
			return &fs.PathError{Op: "write", Path: "mailbox.wal.1", Err: syscall.ENOSPC}
		}
		return commit()
	})
	out := make(lineWriter, 64)
	var errs bytes.Buffer
	o := runOptions{shared: &shared{}, logFormat: "text"}
	ended := make(chan error, 1)
	log := slog.New(newTextLog(out, slog.LevelInfo, false))
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		ended <- o.serve(ctx, streams{out: out, err: &errs}, newNotices(&errs, nil), file, source{}, db, log)
	}()
	defer func() { stop(); <-ended }()
	out.await(t, "process started")

	events := make(lineWriter, 64)
	follow, unfollow := context.WithCancel(t.Context())
	followed := make(chan int, 1)
	go func() {
		followed <- run(follow, []string{"events", "-f", "--data", file.Data}, strings.NewReader(""), events, io.Discard)
	}()
	for { // the supervisor's own write may have come first
		full.Store(true)
		if status, _, stderr := sovereign(t, "send", "idle", "x", "--delay", "1h", "--data", file.Data); strings.Contains(stderr, "[disk_full]") {
			break
		} else if status != exitDone {
			t.Fatalf("send: status %d, %q", status, stderr)
		}
	}
	out.await(t, "the disk of the store is full")
	events.await(t, "disk_full")
	unfollow()
	<-followed
	if _, stdout, _ := sovereign(t, "status", "--data", file.Data); !strings.Contains(stdout, fullNote) {
		t.Errorf("status: %q", stdout)
	}
	if status, stdout, _ := sovereign(t, "status", "--check", "--data", file.Data); status != exitFailed || !strings.Contains(stdout, fullNote) {
		t.Errorf("check: status %d, %q", status, stdout)
	}
}
