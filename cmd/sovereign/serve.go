package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	oklog "github.com/oklog/run"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/recovery"
	"github.com/sovereign-run/sovereign/server"
	"github.com/sovereign-run/sovereign/store/bolt"
	"github.com/sovereign-run/sovereign/supervisor"
	"github.com/sovereign-run/sovereign/supervisor/process"
)

// serve builds every part of a supervisor once, in the order in which they depend
// on each other, and runs them until the first is to stop. When it returns,
// nothing runs any more. It returns nil after a signal or a shutdown.
func (o runOptions) serve(ctx context.Context, io streams, file *config.File, from source, db *bolt.DB, log *slog.Logger) (err error) {
	service := takeNotifier()
	signals := catchSignals(service.listens() || !hasTerminal()) // before the host, which no longer knows what was ignored
	defer signals.stop()

	var box *mailbox.Box
	clock := fence.NewClock(clockOf(db), func(gap time.Duration) {
		// Suspended or stopped: nobody's time ran out meanwhile (P9).
		if gap < time.Second { // a busy machine; not worth a line for each
			log.Debug("supervisor did not run for a moment; all deadlines move by as much", "gap", gap)
			return
		}
		log.Warn("supervisor did not run for a while; all deadlines move by as much", "gap", gap)
		box.Note(mailbox.Event{Kind: protocol.EventGap, Text: "the supervisor did not run for " + gap.Round(time.Millisecond).String() +
			"; all deadlines moved by as much"})
	})
	box, err = mailbox.Open(ctx, db, fence.NewOn(db, clock), mailbox.Options{Log: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, box.Close()) }()
	// What a restore that was interrupted has not parked yet, before anything is
	// granted.
	if parked, err := box.ParkRestored(ctx, db.Epoch()); err != nil {
		return err
	} else if len(parked) > 0 {
		log.Warn("messages parked: the store was restored or rolled back", "messages", len(parked))
	}
	if err := box.SetActors(ctx, policies(file.Actors)); err != nil {
		return err
	}
	if err := box.Load(ctx); err != nil {
		return err
	}
	since, err := lastEvent(ctx, box)
	if err != nil {
		return err
	}
	rec := recovery.New(box, recovery.NewWorkspaces(file.Data), log)

	host, err := process.NewHost(log)
	if err != nil {
		return fmt.Errorf("prepare to own children: %w", err)
	}
	defer func() { err = errors.Join(err, host.Close()) }()
	console := o.console(io.out)
	defer closeConsole(console)

	controlSocket, err := server.ListenControl(file.Data)
	if err != nil {
		return err
	}
	defer controlSocket.Close()
	workerSocket, err := server.ListenWorker(file.Data)
	if err != nil {
		return err
	}
	defer workerSocket.Close()

	wires := &channels{}
	sup := supervisor.New(file.Actors, box, rec, host, supervisor.Options{Data: file.Data, Socket: workerSocket.Path(),
		Attacher: wires, Console: console, Environ: os.Environ(), Failed: db.Failed(), Log: log})
	reloads := &reloader{source: from, data: file.Data, sup: sup, box: box, log: log,
		around: func() func() { return service.during(log) }}
	people := operator{Supervisor: sup, reloads: reloads, config: file.Path, started: time.Now()}
	control := server.NewControl(box, people, thisBuild().Version, file.Data).WithStorage(storage{DB: db})
	wires.server = server.New(box, control, sup, log)
	readings := liveMetrics(db, box, control, sup, wires.server)
	control.WithMetrics(readings)
	var scraped net.Listener
	if o.metrics != "" {
		if scraped, err = listenMetrics(o.metrics); err != nil {
			return err
		}
		defer scraped.Close()
	}

	o.greet(io.err, file)
	var g oklog.Group
	var failure error // of the supervisor, whoever stopped first

	// What the supervisor needs until its last child has ended: workers complete
	// and renew while they stop. Nobody interrupts these; the supervisor's end
	// does.
	needed, notNeeded := context.WithCancel(context.WithoutCancel(ctx))
	defer notNeeded()
	for _, part := range []func(context.Context) error{
		func(ctx context.Context) error { return wires.server.Serve(ctx, controlSocket, workerSocket) },
		box.Run,
		rec.Run,
		func(ctx context.Context) error {
			return tellClockSet(ctx, func() {
				log.Warn("wall clock was set; due times are looked at anew")
				box.Note(mailbox.Event{Kind: protocol.EventClockSet, Text: "somebody set the wall clock; delayed messages follow it"})
				box.WallStepped()
			})
		},
	} {
		g.Add(func() error { return unlessEnded(needed, part(needed)) }, func(error) {})
	}
	if scraped != nil {
		g.Add(func() error { return serveMetrics(needed, scraped, readings) }, func(error) {})
	}
	{ // The supervisor stops in order when anything else stops, and then all is over.
		running, stop := context.WithCancelCause(ctx)
		g.Add(func() error {
			defer notNeeded()
			failure = sup.Run(running)
			return failure
		}, func(err error) { stop(err) })
	}
	{ // The first signal stops; the second one, until the end, hurries.
		g.Add(func() error { return signals.first(io.err, sup.Hurry) }, func(error) { signals.release() })
	}
	{ // A service is told by SIGHUP that its file has changed.
		waiting, stop := context.WithCancel(ctx)
		g.Add(func() error { return reloads.onHangup(waiting, signals.reload) }, func(error) { stop() })
	}
	{ // The service manager is told that all is up, and that it ends.
		watching, stop := context.WithCancel(ctx)
		g.Add(func() error { return tellService(watching, service, box, sup, log) }, func(error) {
			stop()
			_ = service.Stopping(stopTime(sup.Declared())) // it ends, whether it is heard or not
		})
	}
	g.Add(func() error {
		err := keepWatchdog(needed, service, func(ctx context.Context) error { return healthy(ctx, sup, db) }, log)
		return unlessEnded(needed, err)
	}, func(error) {})
	if o.drain {
		watching, stop := context.WithCancel(ctx)
		g.Add(func() error { return untilDrained(watching, box, sup, since) }, func(error) { stop() })
	}
	err = g.Run()
	if failure = unlessAsked(failure); failure != nil {
		return failure
	}
	return unlessAsked(err)
}

// lastEvent is where the journal ends before the run begins.
func lastEvent(ctx context.Context, box *mailbox.Box) (uint64, error) {
	last, err := box.LastEvents(ctx, 1)
	if err != nil || len(last) == 0 {
		return 0, err
	}
	return last[0].Seq, nil
}

// unlessEnded is err, unless ctx has ended: that is how a part is told to end.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// unlessAsked is err, unless it says that the end was asked for: by a signal, or
// by --drain with nothing left to do.
func unlessAsked(err error) error {
	if errors.Is(err, errStopped) || errors.Is(err, errDrained) {
		return nil
	}
	return err
}
