package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

// TestStatusOf_FollowsTheCategory holds the exit statuses of docs/interface.md.
func TestStatusOf_FollowsTheCategory(t *testing.T) {
	_, wrong := config.Parse("a.yaml", []byte("version: 2\n"))
	wrapped := func(c refusal.Category) error { return fmt.Errorf("doing: %w", refusal.New(c, "m", "", "")) }
	for _, tc := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("plain"), 1},
		{wrapped(refusal.OutcomeUnknown), 1},
		{wrapped(refusal.Unavailable), 1},
		{wrapped(refusal.BadRequest), 2},
		{wrong, 2},
		{wrapped(refusal.FencingTokenStale), 3},
		{wrapped(refusal.StoreLocked), 3},
		{wrapped(refusal.MessageMissing), 4},
		{statusError{exitFailed, wrapped(refusal.MessageMissing)}, 1},
		{protocol.ErrorOf(refusal.New(refusal.InboxFull, "m", "", "")), 3},
	} {
		if got := statusOf(tc.err); got != tc.want {
			t.Errorf("statusOf(%v) = %d, want %d", tc.err, got, tc.want)
		}
	}
}

// TestReport_TellsOnce: people read stderr, programs one line of JSON on stdout, and
// neither gets what the other one gets.
func TestReport_TellsOnce(t *testing.T) {
	err := refusal.New(refusal.InboxFull, "the inbox is full", "2 of 2", "try later\x1b[2J").Later()
	var out, errs bytes.Buffer
	report(err, false, &out, &errs)
	want := "sovereign: the inbox is full [inbox_full]\n  why:  2 of 2\n  next: try later\\x1b[2J\n"
	if out.Len() != 0 || errs.String() != want {
		t.Errorf("stdout %q, stderr %q, want %q", out.String(), errs.String(), want)
	}
	out.Reset()
	errs.Reset()
	report(err, true, &out, &errs)
	var got struct{ Error errorJSON }
	if e := json.Unmarshal(out.Bytes(), &got); e != nil || strings.Count(out.String(), "\n") != 1 || errs.Len() != 0 {
		t.Fatalf("stdout %q, stderr %q, %v", out.String(), errs.String(), e)
	}
	if got.Error.Category != refusal.InboxFull || !got.Error.Retryable || got.Error.Next == "" || got.Error.Why == "" {
		t.Errorf("got %+v", got.Error)
	}
	out.Reset()
	report(statusError{status: 1}, true, &out, &errs)
	if out.Len()+errs.Len() != 0 {
		t.Errorf("an answer that was written already is followed by %q%q", out.String(), errs.String())
	}
}
