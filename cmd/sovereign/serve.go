package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync/atomic"
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
func (o runOptions) serve(ctx context.Context, io streams, said *notices, file *config.File, from source, db *bolt.DB, log *slog.Logger) (err error) {
	t := takeoverOf(ctx)
	program, err := thisProgram() // before somebody replaces it
	if err != nil {
		return err
	}
	service := takeNotifier()
	signals := catchSignals(service.listens() || !hasTerminal()) // before the host, which no longer knows what was ignored
	defer func() {
		if t != nil && !t.done.Load() {
			t.signals, t.service = signals, service // for the program before this one, which goes on
			return
		}
		signals.stop()
	}()

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
	declared := file.Actors
	var arrivals *mailbox.HandedArrivals
	var toldFull atomic.Bool
	if t != nil {
		toldFull.Store(t.Full)
		clock.Resume(t.Now)
		signals.take(t.Signals)
		declared, arrivals = t.Supervisor.Specs(), t.Arrivals
		if t.Failure != nil {
			program = t.Program
		}
	}
	box, err = mailbox.Open(ctx, db, fence.NewOn(db, clock), mailbox.Options{Log: log, Arrivals: arrivals})
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
	if err := box.SetActors(ctx, policies(declared)); err != nil {
		return err
	}
	if err := box.Load(ctx); err != nil {
		return err
	}
	since, err := lastEvent(ctx, box)
	if err != nil {
		return err
	}
	if t != nil {
		since = t.Since
	}
	rec := recovery.New(box, recovery.NewWorkspaces(file.Data), log)

	controlSocket, workerSocket, err := listen(file.Data, t)
	if err != nil {
		return err
	}
	defer workerSocket.Close()
	defer controlSocket.Close()
	var scraped net.Listener
	switch {
	case o.metrics == "":
	case t != nil && t.Metrics != nil:
		scraped, err = t.metrics()
	default:
		scraped, err = listenMetrics(o.metrics)
	}
	if err != nil {
		return err
	}
	var scrapers *guests // nil = metrics are not served
	if scraped != nil {
		defer scraped.Close()
		scrapers = newGuests()
	}
	options := supervisor.Options{Data: file.Data, Socket: workerSocket.Path(), Environ: childEnviron(os.Environ(), program), Failed: db.Failed(), Log: log}
	var host *process.Host
	if t == nil {
		host, err = process.NewHost(log)
	} else {
		options.Handed = t.Supervisor
		host, options.Processes, err = process.Inherit(log, t.thread, t.Host)
	}
	if err != nil {
		return fmt.Errorf("prepare to own children: %w", err)
	}
	if t != nil {
		t.commit()
	}
	defer func() { err = errors.Join(err, host.Close()) }()
	console := o.console(io.out)
	defer closeConsole(console)

	wires := &channels{}
	options.Attacher, options.Console = wires, console
	options.Connections = func(n int) {
		if scrapers != nil {
			scrapers.limit(n / 4)
			n -= n / 4
		}
		wires.server.Limit(n)
	}
	sup := supervisor.New(declared, box, rec, host, options)
	reloads := &reloader{source: from, data: file.Data, sup: sup, box: box, log: log,
		around: func() func() { return service.during(log) }}
	ups := &upgrader{config: file.Path, data: file.Data, program: program, since: since, log: log, parts: handedParts{db: db, box: box, clock: clock, host: host,
		sup: sup, sockets: []*server.Listener{controlSocket, workerSocket}, scraped: scraped, console: console, said: said, service: service, signals: signals, full: &toldFull}}
	people := operator{Supervisor: sup, reloads: reloads, upgrader: ups, config: file.Path, started: time.Now()}
	control := server.NewControl(box, people, thisBuild().Version, file.Data).WithStorage(storage{DB: db})
	wires.server = server.New(box, control, sup, log)
	ups.parts.answers = wires.server
	readings := liveMetrics(db, box, control, sup, wires.server)
	control.WithMetrics(readings)
	if t == nil {
		o.greet(io.err, file)
	}
	var all oklog.Group
	g := parts{&all, &ups.stand}
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
		func(ctx context.Context) error {
			return tellFull(ctx, &toldFull, db.Full, func(full bool) {
				event := mailbox.Event{Kind: protocol.EventDiskHasRoom, Text: "the store accepts all again"}
				if full {
					event = mailbox.Event{Kind: protocol.EventDiskFull, Text: fullNote}
					log.Warn("the disk of the store is full; ends of attempts are stored, all else is refused until there is room", "data", file.Data)
				} else {
					log.Info("the disk of the store has room again", "data", file.Data)
				}
				if err := box.RecordEssential(ctx, event); err != nil && ctx.Err() == nil {
					log.Warn("event not written", "kind", event.Kind, "err", err)
				}
			})
		},
	} {
		g.Add(func() error { return unlessEnded(needed, part(needed)) }, func(error) {})
	}
	if scraped != nil {
		g.Add(func() error { return serveMetrics(needed, scrapers.at(scraped), readings) }, func(error) {})
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
		g.Add(func() error { return reloads.onHangup(waiting, signals) }, func(error) { stop() })
	}
	{ // The service manager is told that all is up, and that it ends.
		watching, stop := context.WithCancel(ctx)
		g.Add(func() error { return tellService(watching, service, box, sup, log) }, func(error) {
			stop()
			_ = service.Stopping(stopTime(sup.Declared())) // it ends, whether it is heard or not
		})
	}
	if t != nil {
		settling, stop := context.WithCancel(ctx)
		g.Add(func() error { return ups.settle(settling, t, reloads) }, func(error) { stop() })
	}
	g.Add(func() error {
		err := keepWatchdog(needed, service, func(ctx context.Context) error { return healthy(ctx, sup, db) }, log)
		return unlessEnded(needed, err)
	}, func(error) {})
	if o.drain {
		watching, stop := context.WithCancel(ctx)
		g.Add(func() error { return untilDrained(watching, box, sup, since, log) }, func(error) { stop() })
	}
	err = all.Run()
	if failure = unlessAsked(failure); failure != nil {
		return failure
	}
	if o.drain && errors.Is(err, errStopped) {
		tellUndrained(context.WithoutCancel(ctx), box, sup.Declared(), log)
	}
	return unlessAsked(err)
}

// parts are what runs until the first of them ends; that is not while an upgrade has
// everything stand still.
type parts struct {
	group *oklog.Group
	stand *standstill
}

func (p parts) Add(execute func() error, interrupt func(error)) {
	p.group.Add(p.stand.ends(execute), interrupt)
}

// listen makes the sockets of the store in data, or goes on with those of the program
// that t takes over from.
func listen(data string, t *takeover) (control, worker *server.Listener, err error) {
	if t != nil {
		return t.listeners()
	}
	if control, err = server.ListenControl(data); err != nil {
		return nil, nil, err
	}
	if worker, err = server.ListenWorker(data); err != nil {
		return nil, nil, errors.Join(err, control.Close())
	}
	return control, worker, nil
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
