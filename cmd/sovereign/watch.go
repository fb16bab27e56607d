package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/sovereign-run/sovereign/protocol"
)

// watchStatus shows the status, again at each event of the journal, and the
// times in it each second, until interrupted or until the supervisor is gone.
func (o statusOptions) watchStatus(ctx context.Context, io streams, actor string) error {
	conn, err := o.connect(ctx, toRead)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.mustRun("watch the status"); err != nil {
		return err
	}
	next, err := eventsOptions{shared: o.shared, lines: 0}.past(ctx, conn, nil)
	if err != nil {
		return err
	}
	events, err := o.connect(ctx, toRead)
	if err != nil {
		return err
	}
	defer events.Close()
	defer endWithReader(io.out)()
	ctx, cancel := context.WithCancelCause(ctx)
	changed := make(chan struct{}, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		cancel(followEvents(ctx, events, next, "", func(protocol.Event) error {
			select {
			case changed <- struct{}{}:
			default: // one is enough
			}
			return nil
		}))
	}()
	defer func() { cancel(nil); <-done }()
	return o.redraw(ctx, io, conn, actor, changed)
}

func (o statusOptions) redraw(ctx context.Context, io streams, conn *connection, actor string, changed <-chan struct{}) error {
	seconds := time.NewTicker(time.Second)
	defer seconds.Stop()
	onTerminal := isTerminal(io.out) && !o.json
	var status protocol.Status
	var at time.Time
	fetch := true
	for {
		if fetch {
			if err := conn.call(ctx, protocol.MethodStatus, protocol.StatusParams{Actor: actor}, &status); err != nil {
				return cause(ctx, err)
			}
			at = time.Now()
		}
		if fetch || onTerminal {
			if err := o.frame(io, older(status, time.Since(at)), onTerminal); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return cause(ctx, nil)
		case <-changed:
			fetch = true
		case <-seconds.C:
			fetch = false
		}
	}
}

// cause is why ctx ended, where it did: that is the better reason.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// frame writes one picture: on a terminal over the last one.
func (o statusOptions) frame(io streams, status protocol.Status, onTerminal bool) error {
	if o.json {
		return writeJSON(io.out, status)
	}
	var b bytes.Buffer
	if err := printStatus(&b, status, terminalWidth(io.out)); err != nil {
		return err
	}
	if !onTerminal {
		b.WriteByte('\n')
		_, err := io.out.Write(b.Bytes())
		return err
	}
	// From the top, each line cleared to its end, then what is left below.
	picture := bytes.ReplaceAll(b.Bytes(), []byte("\n"), []byte("\x1b[K\n"))
	_, err := fmt.Fprintf(io.out, "\x1b[H%s\x1b[J", picture)
	return err
}

// older is status as it will look after d if nothing happens.
func older(status protocol.Status, d time.Duration) protocol.Status {
	status.Supervisor.Uptime += protocol.Duration(d)
	actors := make([]protocol.ActorStatus, len(status.Actors))
	for i, a := range status.Actors {
		slots := make([]protocol.SlotStatus, len(a.Slots))
		for j, s := range a.Slots {
			if s.PID > 0 {
				s.Uptime += protocol.Duration(d)
			}
			slots[j] = s
		}
		a.Slots = slots
		actors[i] = a
	}
	status.Actors = actors
	return status
}
