package main

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/store/bolt"
	"github.com/sovereign-run/sovereign/supervisor"
)

const (
	// lookAgain, for each actor, is waited between two looks at whether all are up.
	lookAgain = 50 * time.Microsecond
	// statusPace is the least time between two lines of status: it is for people.
	statusPace = time.Second
	// startOver is how long after all are up the memory of the start is given back.
	startOver = time.Second
)

// tellService tells the service manager once that all actors are up, and from then
// on, whenever that changes, how they stand. It ends with ctx, and returns its cause.
func tellService(ctx context.Context, service *notifier, box *mailbox.Box, sup *supervisor.Supervisor, log *slog.Logger) error {
	warn := func(err error) {
		if err != nil {
			log.Warn("service manager not told", "err", err)
		}
	}
	if !service.isReady() {
		warn(service.Extend(startTime(sup.Declared())))
	}
	select {
	case <-sup.Recovered():
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	wait := time.Duration(len(sup.Declared())) * lookAgain
	for ready := service.isReady(); ; {
		changed := sup.Changes()
		var status []supervisor.ActorStatus
		coming := !ready && sup.Spawning() // then there is no need to look at each
		if !coming {
			status = sup.Status()
			wait = time.Duration(len(status)) * lookAgain
		}
		switch {
		case coming:
		case ready:
			warn(service.Status(serviceStatus(status)))
			wait = max(wait, statusPace)
		case allUp(status, blocked(sup.Declared(), box.Actors(), status)):
			warn(service.Ready(serviceStatus(status)))
			ready = true
			// What the start has left behind is not needed to sit idle. What was started
			// has something to ask first.
			defer time.AfterFunc(startOver, debug.FreeOSMemory).Stop()
			if !service.listens() {
				changed = nil // nobody wants to know more
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		}
		// Many actors come up one after the other; looking at all of them for each
		// would cost more than starting them.
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// during tells the service manager of a reload, until done is called.
func (n *notifier) during(log *slog.Logger) (done func()) {
	end, err := n.Reloading()
	if err != nil {
		log.Warn("service manager not told", "err", err)
	}
	return func() {
		if err := end(); err != nil {
			log.Warn("service manager not told", "err", err)
		}
	}
}

// serviceStatus is how the actors stand, in one line. It does not change while tasks
// come and go.
func serviceStatus(actors []supervisor.ActorStatus) string {
	const most = 5 // names
	var others []string
	for _, a := range actors {
		if !inOrder(a) {
			others = append(others, a.Actor+" "+string(a.State))
		}
	}
	line := plural(int64(len(actors)), "actor")
	if len(others) == 0 {
		return line + " up"
	}
	line += fmt.Sprintf(", %d up; ", len(actors)-len(others))
	if len(others) > most {
		others = append(others[:most], fmt.Sprintf("and %d more", len(others)-most))
	}
	return line + strings.Join(others, ", ")
}

// inOrder says whether an actor does what it is there for, or has done it.
func inOrder(a supervisor.ActorStatus) bool {
	switch a.State {
	case protocol.SlotUp, protocol.SlotExited:
		return true
	case protocol.SlotIdle, protocol.SlotSpawning, protocol.SlotStarting, protocol.SlotEnding:
		return a.Mode == config.Task
	default:
		return false
	}
}

// keepWatchdog tells the service manager twice in the time that it has set that the
// supervisor lives, as long as healthy says so, until ctx ends. Where no watchdog is
// asked for there is no timer either.
func keepWatchdog(ctx context.Context, service *notifier, healthy func(context.Context) error, log *slog.Logger) error {
	if service.watchdog == 0 {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	half := service.watchdog / 2
	tick := time.NewTicker(half)
	defer tick.Stop()
	for {
		within, cancel := context.WithTimeout(ctx, half)
		err := healthy(within)
		cancel()
		switch {
		case ctx.Err() != nil:
		case err != nil:
			log.Error("the service manager is not told that the supervisor lives", "err", err)
		default:
			if err := service.Watchdog(); err != nil {
				log.Warn("service manager not told", "err", err)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// healthy returns nil where the supervisor takes what it is asked and the store's
// writer has its turn. Nothing is written.
func healthy(ctx context.Context, sup *supervisor.Supervisor, db *bolt.DB) error {
	if err := sup.Answers(ctx); err != nil {
		return err
	}
	if err := db.Answers(ctx); err != nil {
		return fmt.Errorf("the store does not answer: %w", err)
	}
	return nil
}
