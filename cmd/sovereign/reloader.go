package main

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/supervisor"
)

// A source is where a run has its actors from.
type source struct {
	path string // of actors.yaml, absolute once it has been read
	data string // the folder of the store where --data says so, absolute; "" = the file says it
}

// load reads and checks the file. The error is a *config.Problems.
func (s source) load() (*config.File, error) {
	file, err := config.Load(s.path)
	if err == nil && s.data != "" {
		file.Data = s.data
	}
	return file, err
}

// A reloader has a supervisor go by its file as it is now: the same file, under the same
// name, read by the supervisor's own user.
type reloader struct {
	source source
	data   string // folder of the store that is open
	sup    *supervisor.Supervisor
	box    *mailbox.Box
	log    *slog.Logger
	around func() (done func()) // called before and after a reload is made; nil = nothing is

	reading sync.Mutex // held from reading the file until it is applied, so that the last one read is the last one applied
}

// Reload has the supervisor go by the file; with dryRun it only says what that would do.
// A file that is wrong is refused, with all of its problems, as a *config.Problems, and
// nothing has changed then.
func (r *reloader) Reload(ctx context.Context, dryRun bool) (protocol.Reload, error) {
	r.reading.Lock()
	defer r.reading.Unlock()
	if !dryRun && r.around != nil {
		defer r.around()()
	}
	changes, declared, err := r.reload(ctx, dryRun)
	if err != nil {
		if !dryRun && !refusal.Has(err, refusal.Unavailable) { // who starts, stops or is replaced judges no file
			r.log.Error("reload refused; everything goes on as it was", "err", firstLine(err))
			r.box.Note(mailbox.Event{Kind: protocol.EventReloadRefused, Text: firstLine(err)})
		}
		return protocol.Reload{}, err
	}
	out := protocol.Reload{Config: r.source.path, Applied: !dryRun, Changes: make([]protocol.ReloadChange, len(changes)), Unchanged: declared}
	for i, c := range changes {
		out.Changes[i] = protocol.ReloadChange{Actor: c.Actor, Action: string(c.Action), Keys: c.Keys,
			Replicas: protocol.Replicas{From: c.From, To: c.To}, Note: c.Note}
		if c.Action != supervisor.ActionRemove {
			out.Unchanged--
		}
		if !dryRun {
			r.log.Info("reloaded", "actor", c.Actor, "action", string(c.Action), "keys", strings.Join(c.Keys, " "))
			r.box.Note(mailbox.Event{Kind: protocol.EventReloaded, Actor: c.Actor, Text: strings.TrimSpace(string(c.Action) + " " + strings.Join(c.Keys, " "))})
		}
	}
	if !dryRun && len(changes) == 0 {
		r.log.Info("reloaded", "changes", 0)
	}
	return out, nil
}

// reload returns the changes, and how many actors the file declares.
func (r *reloader) reload(ctx context.Context, dryRun bool) ([]supervisor.Change, int, error) {
	file, err := r.source.load()
	if err != nil {
		return nil, 0, err
	}
	if file.Data != r.data {
		return nil, 0, &config.Problems{List: []config.Problem{{Path: r.source.path,
			Message: fmt.Sprintf("data is now %s, allowed: %s, on which this supervisor runs; stop it to move the store", file.Data, r.data)}}}
	}
	if dryRun {
		return r.sup.PlanReload(file.Actors), len(file.Actors), nil
	}
	changes, err := r.sup.Reload(ctx, file.Actors, func(ctx context.Context) error {
		return r.box.SetActors(ctx, policies(file.Actors))
	})
	return changes, len(file.Actors), err
}

func firstLine(err error) string {
	line, rest, more := strings.Cut(refusal.Of(err).Error(), "\n")
	if more {
		line += fmt.Sprintf(" (and %d more)", strings.Count(rest, "\n")+1)
	}
	return line
}

// onHangup reloads whenever a service is sent SIGHUP, until ctx ends; it returns ctx's
// cause. One that comes before the slots run is carried out once they do. What comes of it
// is in the log.
func (r *reloader) onHangup(ctx context.Context, signals *interruptions) error {
	select {
	case <-r.sup.Recovered():
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for {
		select {
		case <-signals.reload:
			_, err := r.Reload(ctx, false)
			signals.reloaded(err)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// sourceOf is where a run of path with --data data has its actors from.
func sourceOf(path, data string) (source, error) {
	s := source{path: path}
	if data == "" {
		return s, nil
	}
	var err error
	if s.data, err = filepath.Abs(data); err != nil {
		return source{}, fmt.Errorf("find the store: %w", err)
	}
	return s, nil
}
