package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/sovereign-run/sovereign/protocol"
)

// A demoStage is one performance: the fleet, who directs it, and what the
// director has seen so far. One goroutine owns it.
type demoStage struct {
	folder string
	story  *demoStory
	gate   *demoGate

	supervisor *demoSupervisor // nil: none runs
	following  context.CancelFunc
	followed   chan error // why the journal is no longer followed
	events     chan protocol.Event
	next       uint64 // where the journal is continued; owned by the follower while it runs

	sent      []string              // the orders' messages to pack
	wanted    map[string]bool       // "actor order": who reports this first is held
	held      map[string]demoReport // who is held, by the same names
	completed map[string]int        // completed messages by actor
	done      map[string]int        // the attempt that completed a message
	cut       []demoCut             // attempts that were not left to end by themselves
	staged    []demoReport          // attempts that have staged a follow-up
	refused   []demoReport          // completions that were refused
	frozen    int                   // pid of the worker that is stopped, or 0
}

// setDemoStage prepares folder. With pace, workers take so long that a person can
// follow.
func setDemoStage(folder string, story *demoStory, paced bool) (*demoStage, error) {
	work := "80ms"
	if paced {
		work = "600ms"
	}
	if err := writeDemo(folder, work); err != nil {
		return nil, fmt.Errorf("write the demonstration's fleet: %w", err)
	}
	gate, err := openDemoGate(filepath.Join(folder, demoSock))
	if err != nil {
		return nil, fmt.Errorf("listen for the demonstration's workers: %w", err)
	}
	return &demoStage{folder: folder, story: story, gate: gate, events: make(chan protocol.Event),
		wanted: map[string]bool{}, held: map[string]demoReport{}, completed: map[string]int{}, done: map[string]int{}}, nil
}

// at is the store, asked as an operator, whatever the environment says.
func (s *demoStage) at() place { return placeOf(filepath.Join(s.folder, demoData)) }

// raise starts a supervisor and follows its journal once it answers.
func (s *demoStage) raise(ctx context.Context) error {
	arrivals, err := watchSocket(s.at().data)
	if err != nil {
		return err
	}
	supervisor, err := startDemoSupervisor(s.folder)
	if err != nil {
		return errors.Join(err, arrivals.Close())
	}
	s.supervisor = supervisor
	alive, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := make(chan struct{})
	defer close(stop)
	go func() { // ends with raise
		select {
		case <-supervisor.done:
			cancel(fmt.Errorf("the supervisor ended before it listened: %w", errors.Join(supervisor.err, s.lastWords())))
		case <-stop:
		}
	}()
	if err := errors.Join(arrivals.next(alive), arrivals.Close()); err != nil {
		return err
	}
	conn, err := connectTo(ctx, s.at(), toRead)
	if err != nil {
		return err
	}
	if err := errors.Join(conn.mustRun("follow the journal")); err != nil {
		return errors.Join(err, conn.Close())
	}
	following, end := context.WithCancel(ctx)
	s.following, s.followed = end, make(chan error, 1)
	go func(followed chan<- error) { // joined by fall
		err := followEvents(following, conn, s.next, "", func(e protocol.Event) error {
			select {
			case s.events <- e:
				s.next = e.Seq
				return nil
			case <-following.Done():
				return context.Cause(following)
			}
		})
		followed <- errors.Join(err, conn.Close())
	}(s.followed)
	return nil
}

// fall ends the supervisor by way of end, and what followed it.
func (s *demoStage) fall(end func() error) error {
	if s.supervisor == nil {
		return nil
	}
	err := end()
	s.supervisor = nil
	if s.following != nil {
		s.following()
		<-s.followed
		s.following = nil
	}
	return err
}

// lastWords is the end of what the supervisor printed, as an error.
func (s *demoStage) lastWords() error {
	const enough = 2000
	text, err := os.ReadFile(filepath.Join(s.folder, demoLog))
	if err != nil || len(text) == 0 {
		return err
	}
	return errors.New(printableLines(string(text[max(0, len(text)-enough):])))
}

// until goes on with what happens until done says that it is enough. what names
// it where it does not come.
func (s *demoStage) until(ctx context.Context, what string, done func() bool) error {
	for !done() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until %s: %w", what, context.Cause(ctx))
		case r := <-s.gate.reports:
			s.reported(r)
		case e := <-s.events:
			s.happened(ctx, e)
		case <-s.supervisor.done:
			return fmt.Errorf("wait until %s: the supervisor ended: %w", what, errors.Join(s.supervisor.err, s.lastWords()))
		}
	}
	return nil
}

// reported lets a worker go on, unless it is wanted where it is.
func (s *demoStage) reported(r demoReport) {
	s.story.names[r.Message] = r.Order
	if r.Staged != "" {
		s.staged = append(s.staged, r)
	}
	if r.Point == demoRefused {
		s.refused = append(s.refused, r)
		s.story.refusal(r)
	} else if name := r.Actor + " " + r.Order; s.wanted[name] {
		delete(s.wanted, name)
		s.held[name] = r
		return
	}
	r.goOn()
}

// happened notes what the journal says.
func (s *demoStage) happened(ctx context.Context, e protocol.Event) {
	if e.Kind == "completed" {
		s.completed[e.Actor]++
		s.done[e.Message] = e.Attempt
	}
	if e.Message != "" && s.story.names[e.Message] == "" {
		var m protocol.MessageDetail
		conn, err := connectTo(ctx, s.at(), toRead)
		if err == nil {
			err = errors.Join(conn.call(ctx, protocol.MethodInboxShow, protocol.InboxShowParams{ID: e.Message}, &m), conn.Close())
		}
		if err == nil { // else the story calls it by its id
			s.story.names[e.Message] = m.Subject
		}
	}
	s.story.event(e)
}

// send puts an order into pack's inbox.
func (s *demoStage) send(ctx context.Context, numbers ...int) error {
	conn, err := connectTo(ctx, s.at(), toWrite)
	if err != nil {
		return err
	}
	defer conn.Close()
	for _, n := range numbers {
		var sent protocol.SendResult
		order := fmt.Sprintf("order %d", n)
		params := protocol.SendParams{From: "demo", Outgoing: protocol.Outgoing{To: demoPack, Subject: order, Body: protocol.Body(order)}}
		if err := conn.call(ctx, protocol.MethodSend, params, &sent); err != nil {
			return err
		}
		s.sent = append(s.sent, sent.ID)
		s.story.names[sent.ID] = order
	}
	return nil
}

// cutOff notes that r's attempt was ended by how.
func (s *demoStage) cutOff(r demoReport, how string) {
	s.cut = append(s.cut, demoCut{Message: r.Message, Attempt: r.Attempt, How: how})
}

// clear ends whatever is left of the performance. It may be repeated.
func (s *demoStage) clear() error {
	if s.frozen != 0 {
		_ = syscall.Kill(s.frozen, syscall.SIGCONT)
		s.frozen = 0
	}
	err := s.fall(func() error { return s.supervisor.stop() })
	return errors.Join(err, s.gate.Close())
}
