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
	Stopped  []protocol.Message // the messages as `sovereign inbox` has them, without a supervisor
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
	for after := ""; ; {
		var page protocol.Inbox
		if err := run.command(ctx, &page, "inbox", "--limit", "500", "--after", after); err != nil {
			return e, err
		}
		e.Stopped = append(e.Stopped, page.Messages...)
		if after = page.Next; after == "" {
			break
		}
	}
	if err := run.command(ctx, &e.Verified, "verify"); err != nil {
		return e, err
	}
	log, err := os.ReadFile(filepath.Join(run.folder, "supervisor.log"))
	if err != nil {
		return e, err
	}
	e.Log = string(log)
	e.Lines, err = readLogs(filepath.Join(run.folder, "logs"))
	return e, err
}

// command runs a command on the stopped store and reads the JSON that it prints. An
// exit status other than 0 is no error where there is something to read.
func (run *Run) command(ctx context.Context, result any, args ...string) error {
	cmd := exec.CommandContext(ctx, run.binary, append(args, "--json", "--data", filepath.Join(run.folder, "store"))...)
	cmd.Env = outside(os.Environ())
	out, err := cmd.Output()
	if _, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed {
		return fmt.Errorf("run %s: %w", args[0], err)
	}
	if err := json.Unmarshal(out, result); err != nil {
		return fmt.Errorf("read what %s printed, %q: %w", args[0], out, err)
	}
	return nil
}
