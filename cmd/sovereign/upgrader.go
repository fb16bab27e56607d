package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sovereign-run/sovereign/descriptor"
	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/server"
	"github.com/sovereign-run/sovereign/store/bolt"
	"github.com/sovereign-run/sovereign/supervisor"
	"github.com/sovereign-run/sovereign/supervisor/process"
)

// The bounds of an upgrade.
const (
	checkFor = 30 * time.Second // the other program may take to say whether it could take over
	holdFor  = 30 * time.Second // what is half done may take; everything is answered meanwhile
	pauseFor = 10 * time.Second // what runs may take; nothing new is answered meanwhile
)

// An upgrader puts another program in the place of this one, in this order:
//
//  1. The other program is asked whether it could take over. Nothing has changed.
//  2. Hold: nothing new is begun, and what is half done is waited for.
//  3. Pause: requests that run are answered, no slot does anything any more, and
//     all is described. Up to here everything can go on.
//  4. The store is closed, its lock kept. A crash from here on is one of the
//     supervisor: the children end with it, and the next start recovers.
//  5. The other program is executed. It takes over (takeover), or else executes this
//     one again, which takes over from itself.
type upgrader struct {
	config  string // path of actors.yaml
	data    string // folder of the store
	program string // path that this program was started by
	since   uint64 // the last event before the run
	log     *slog.Logger
	parts   handedParts
	stand   standstill

	turn sync.Mutex // one upgrade at a time
	mu   sync.Mutex
	last *upgradeOutcome // mu guards; nil = there was none
}

// handedParts are what an upgrade hands over, or pauses.
type handedParts struct {
	db      *bolt.DB
	box     *mailbox.Box
	clock   *fence.Clock
	host    *process.Host
	sup     *supervisor.Supervisor
	answers *server.Server
	sockets []*server.Listener
	scraped net.Listener // nil = metrics are not served
	console console
	said    *notices
	service *notifier
	signals *interruptions
	full    *atomic.Bool // see tellFull
}

// A standstill keeps the end of the run and an upgrade apart.
type standstill struct {
	mu    sync.Mutex // held while everything stands still
	ended bool       // mu guards; something has ended, and so all does
}

// ends is f, whose end is the end of the run: not while everything stands still.
func (s *standstill) ends(f func() error) func() error {
	return func() error {
		err := f()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ended = true
		return err
	}
}

// An upgradeOutcome is what has become of one upgrade.
type upgradeOutcome struct {
	id     string
	over   chan struct{} // closed once the rest is known
	result protocol.Upgrade
	err    error
}

func (u *upgrader) outcome(id string) *upgradeOutcome {
	o := &upgradeOutcome{id: id, over: make(chan struct{})}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.last = o
	return o
}

// Upgraded waits until the upgrade id is over.
func (u *upgrader) Upgraded(ctx context.Context, id string) (protocol.Upgrade, error) {
	u.mu.Lock()
	o := u.last
	u.mu.Unlock()
	if o == nil || o.id != id {
		return protocol.Upgrade{}, refusal.New(refusal.WrongState, "it is not known what became of the upgrade",
			"the supervisor was restarted, or upgraded again", "see `sovereign status`")
	}
	select {
	case <-o.over:
		return o.result, o.err
	case <-ctx.Done():
		return protocol.Upgrade{}, context.Cause(ctx)
	}
}

// Upgrade returns once the upgrade is about to happen.
func (u *upgrader) Upgrade(ctx context.Context, binary string) (id string, err error) {
	if !canTakeOver {
		return "", refusal.New(refusal.Failed, "upgrade", "a program can take the place of another one and keep its processes only on Linux",
			"stop the supervisor, and start it with the other program")
	}
	if !u.turn.TryLock() {
		return "", refusal.New(refusal.Unavailable, "upgrade", "another upgrade is under way", "wait until it is over").Later()
	}
	begun := false
	defer func() {
		if !begun {
			u.turn.Unlock()
		}
		if err != nil {
			u.refused(err)
		}
	}()
	h := &handoff{Format: handoffFormat, Version: thisBuild().Version, Schema: bolt.Schema, Args: os.Args[1:], Config: u.config, Data: u.data,
		Program: u.program, Next: u.program, ID: strings.ToLower(rand.Text())}
	if binary != "" {
		if h.Next, err = filepath.Abs(binary); err != nil {
			return "", fmt.Errorf("find the program: %w", err)
		}
	}
	if err := u.room(); err != nil {
		return "", err
	}
	next, err := u.ask(ctx, h)
	if err != nil {
		return "", err
	}
	holding, cancel := context.WithTimeout(ctx, holdFor)
	defer cancel()
	if err := u.parts.sup.Hold(holding); err != nil {
		return "", err
	}
	u.log.Info("upgrade begins", "binary", h.Next, "version", next)
	o := u.outcome(h.ID)
	begun = true
	go func() { // ends with this program, or before the run does: stand sees to that
		defer u.turn.Unlock()
		err := u.replace(h)
		u.parts.sup.Release()
		u.refused(err)
		o.err = err
		close(o.over)
	}()
	return h.ID, nil
}

func (u *upgrader) refused(err error) {
	u.log.Error("upgrade refused; everything goes on as it was", "err", firstLine(err))
	u.parts.box.Note(mailbox.Event{Kind: protocol.EventUpgradeRefused, Text: firstLine(err)})
}

// room refuses an upgrade while the disk of the store is full: the store is closed for it
// and could not be opened again, neither by the other program nor by this one.
func (u *upgrader) room() error {
	if full, _ := u.parts.db.Full(); !full {
		return nil
	}
	return refusal.New(refusal.DiskFull, "upgrade", "the disk of "+u.data+" is full: the store, once closed, could not be opened again",
		"everything goes on as it was; make room on that disk, then try again").Later()
}

// ask has the program h.Next say whether it could take over, and returns its version.
func (u *upgrader) ask(asked context.Context, h *handoff) (version string, err error) {
	no := func(why string) error {
		return refusal.New(refusal.Failed, h.Next+" cannot take over", why, "everything goes on as it was; name another program with --binary")
	}
	ctx, cancel := context.WithTimeout(asked, checkFor)
	defer cancel()
	question, err := memoryFile("handoff")
	if err != nil {
		return "", no(err.Error())
	}
	defer question.Close()
	if err := h.write(question); err != nil {
		return "", err
	}
	out, answer, err := os.Pipe()
	if err != nil {
		return "", no(err.Error())
	}
	defer out.Close()
	p, err := u.parts.host.Start(ctx, process.Spec{Argv: []string{h.Next, "takeover-check"}, Env: os.Environ(), Umask: -1,
		Stdin: question, Stdout: answer, Stderr: answer})
	answer.Close()
	if err != nil {
		return "", no(err.Error())
	}
	said := make(chan []byte, 1)
	go func() { // ends with the pipe, which the tree's end closes, or with out
		b, _ := io.ReadAll(io.LimitReader(out, 1<<20))
		_, _ = io.Copy(io.Discard, out)
		said <- b
	}()
	select {
	case <-p.Exited():
	case <-ctx.Done():
	}
	if err := p.KillTree(context.WithoutCancel(ctx)); err != nil {
		return "", no(err.Error())
	}
	_ = out.SetReadDeadline(time.Now().Add(time.Second)) // whoever else holds the pipe has nothing to say
	text := bytes.TrimSpace(<-said)
	last := text[bytes.LastIndexByte(text, '\n')+1:]
	var r readiness
	switch err := json.Unmarshal(last, &r); {
	case asked.Err() != nil:
		return "", refusal.New(refusal.Unavailable, "upgrade", "the supervisor is stopping, or whoever asked for it has gone", "").Later()
	case ctx.Err() != nil:
		return "", no("it has not said whether it could within " + checkFor.String())
	case err != nil || r.Version == "":
		return "", no(strings.TrimSuffix(fmt.Sprintf("it does not say that it could (%s): %s", p.Exit(), cutTo(printable(string(text)), 400)), ": "))
	case r.Error != nil:
		e := &refusal.Error{Category: r.Error.Category, Message: h.Next + " cannot take over: " + r.Error.Message, Why: r.Error.Why, Next: r.Error.Next}
		if e.Next == "" {
			e.Next = "everything goes on as it was"
		}
		return "", e
	}
	return r.Version, nil
}

// replace returns only where everything goes on as before, and why.
func (u *upgrader) replace(h *handoff) error {
	u.stand.mu.Lock()
	defer u.stand.mu.Unlock()
	if u.stand.ended {
		return refusal.New(refusal.Unavailable, "upgrade", "the supervisor is stopping", "").Later()
	}
	if err := u.room(); err != nil {
		return err
	}
	p := u.parts
	old, err := os.Open("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("open this program: %w", err)
	}
	defer old.Close()
	memory, err := memoryFile("handoff")
	if err != nil {
		return err
	}
	defer memory.Close()
	defer p.service.during(u.log)()
	ctx, cancel := context.WithTimeout(context.Background(), pauseFor)
	defer cancel()
	h.Began = time.Now()
	if h.Answers, err = p.answers.Pause(ctx, p.sockets...); err != nil {
		return err
	}
	var resume func()
	if h.Supervisor, h.Host, resume, err = p.sup.HandOver(ctx); err != nil {
		p.answers.Resume(p.sockets...)
		return err
	}
	h.Host.Children = h.Supervisor.Children()
	for _, l := range p.sockets {
		h.Sockets = append(h.Sockets, l.Handed())
	}
	if p.scraped != nil {
		fd := descriptor.Of(p.scraped)
		h.Metrics = &fd
	}
	h.Old, h.Since, h.Ready, h.Full = old.Fd(), u.since, p.service.isReady(), p.full.Load()
	if err := errors.Join(h.check(), h.write(memory)); err != nil { // so that it cannot fail later
		resume()
		p.answers.Resume(p.sockets...)
		return err
	}
	u.leave(h, old, memory)
	return nil
}

// leave closes the store and executes the other program, or else this one again. It
// does not return.
func (u *upgrader) leave(h *handoff, old, memory *os.File) {
	p := u.parts
	closeConsole(p.console)
	closeSoon(p.said.close)
	_ = p.box.Close()
	h.Now = p.clock.Now()
	lock, err := p.db.HandOver()
	h.Arrivals = p.box.HandArrivals() // nothing is committed any more
	if err == nil {
		h.Lock = lock.Fd()
		h.Signals, err = p.signals.hand()
	}
	if err == nil {
		err = h.write(memory)
	}
	if err == nil {
		keep := append(h.fds(), memory.Fd())
		env := p.service.environ(memory.Fd())
		err = p.host.Exec(h.Next, append([]string{h.Next}, h.Args...), env, keep)
		failure := errorOf(err)
		h.Failure = &failure
		if err = h.write(memory); err == nil {
			err = p.host.Exec(selfFile(h.Old), append([]string{h.Program}, h.Args...), env, keep)
		}
	}
	runtime.KeepAlive(lock)
	// The children end with this process, and the next start recovers.
	u.log.Error("the store is closed, and neither program can be executed; the next start recovers", "err", err)
	closeSoon(p.said.close)
	os.Exit(exitFailed)
}

// settle is the end of an upgrade, in the program that has taken over: it says what has
// become of it. It ends with ctx, and returns its cause.
func (u *upgrader) settle(ctx context.Context, t *takeover, reloads *reloader) error {
	select {
	case <-u.parts.sup.Recovered():
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if t.Ready {
		if err := u.parts.service.goesOn(); err != nil {
			u.log.Warn("service manager not told", "err", err)
		}
	}
	o := u.outcome(t.ID)
	u.parts.answers.Adopt(t.Answers)
	if t.Failure != nil {
		o.err = (&refusal.Error{Category: t.Failure.Category, Message: t.Next + " could not take over: " + t.Failure.Message,
			Why: t.Failure.Why, Next: t.Failure.Next})
		u.refused(o.err)
	} else {
		o.result = protocol.Upgrade{From: t.Version, To: thisBuild().Version, Binary: t.Next, Processes: len(t.Supervisor.Children()),
			TookMS: time.Since(t.Began).Milliseconds()}
		u.log.Info("upgraded", "from", o.result.From, "to", o.result.To, "binary", t.Next, "processes", o.result.Processes, "took_ms", o.result.TookMS)
		u.parts.box.Note(mailbox.Event{Kind: protocol.EventUpgraded, Text: "from " + o.result.From + " to " + o.result.To + ", " + t.Next})
		if _, err := reloads.Reload(ctx, false); err != nil {
			u.log.Error("actors.yaml was not read again", "err", firstLine(err))
		}
	}
	close(o.over)
	<-ctx.Done()
	return context.Cause(ctx)
}
