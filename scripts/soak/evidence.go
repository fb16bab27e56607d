package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/sovereign-run/sovereign/protocol"
)

// Evidence is what there is to judge.
type Evidence struct {
	Lines    []Line
	Messages []protocol.MessageDetail
	Events   []protocol.Event
	Verified protocol.Verified
	Log      string // what the supervisors printed
}

// read starts a supervisor once more, which has nothing to do, asks it for
// everything, and has the store verified after its end.
func (run *Run) read(ctx context.Context) (e Evidence, err error) {
	if err := run.raise(true); err != nil {
		return e, err
	}
	if err := run.supervisor.up(); err != nil {
		return e, err
	}
	for after := ""; ; {
		var page protocol.Inbox
		if err := ask(ctx, run.folder, protocol.MethodInboxList, protocol.InboxListParams{Limit: 500, After: after}, &page); err != nil {
			return e, err
		}
		for _, m := range page.Messages {
			var detail protocol.MessageDetail
			if err := ask(ctx, run.folder, protocol.MethodInboxShow, protocol.InboxShowParams{ID: m.ID}, &detail); err != nil {
				return e, err
			}
			e.Messages = append(e.Messages, detail)
		}
		if after = page.Next; after == "" {
			break
		}
	}
	for after := uint64(0); ; {
		var page protocol.Events
		if err := ask(ctx, run.folder, protocol.MethodEventsList, protocol.EventsListParams{Limit: 500, After: after}, &page); err != nil {
			return e, err
		}
		e.Events = append(e.Events, page.Events...)
		if page.Next <= after {
			break
		}
		after = page.Next
	}
	if err := run.supervisor.term(ctx); err != nil {
		return e, err
	}
	verify := exec.CommandContext(ctx, run.binary, "verify", "--json", "--data", filepath.Join(run.folder, "store"))
	verify.Env = outside(os.Environ())
	out, err := verify.Output()
	if _, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed {
		return e, fmt.Errorf("verify: %w", err)
	}
	if err := json.Unmarshal(out, &e.Verified); err != nil {
		return e, fmt.Errorf("read what verify printed, %q: %w", out, err)
	}
	log, err := os.ReadFile(filepath.Join(run.folder, "supervisor.log"))
	if err != nil {
		return e, err
	}
	e.Log = string(log)
	e.Lines, err = readLogs(filepath.Join(run.folder, "logs"))
	return e, err
}
