package mailbox_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/mailbox/mailboxtest"
	"github.com/sovereign-run/sovereign/recovery"
	"github.com/sovereign-run/sovereign/refusal"
)

// The model: what the mailbox must say, written as plainly as it can be. The
// mailbox is compared with it after every step, over restarts.

type modelMessage struct {
	id       mailbox.ID
	to       string
	state    mailbox.State
	priority int
	attempt  int
	attempts int
	dueAt    time.Time
	content  string // tells contents apart
	key      string
	group    string
	ttl      time.Duration
	lapsesAt time.Time
	last     fence.Token
	failure  mailbox.Category
	receipts map[fence.Token]modelReceipt

	// While it is CLAIMED.
	by        *modelProcess
	task      bool
	auto      bool
	expiresAt time.Duration
	limitAt   time.Duration
	cancelled bool
}

type modelReceipt struct {
	by       *modelProcess
	byWorker bool
	verb     mailbox.Verdict
	expired  bool
	category mailbox.Category
}

type modelStaged struct {
	id       mailbox.ID
	to       string
	content  string
	key      string
	parent   mailbox.Ref
	priority int
	group    string
	ttl      time.Duration
	lapsesAt time.Time
}

type modelProcess struct {
	holder fence.Holder
	alive  bool
	task   mailbox.Ref // of a task's process
}

type model struct {
	house  *mailboxtest.House
	actors map[string]mailbox.Actor

	messages  map[mailbox.ID]*modelMessage
	staged    map[mailbox.ID]*modelStaged
	processes []*modelProcess
	refs      []mailbox.Ref // every claim there ever was
	clock     time.Duration // the lease clock
	lost      map[mailbox.Ref]string
}

func (m *model) counts(actor string) (c mailbox.Counts) {
	for _, msg := range m.messages {
		if msg.to != actor {
			continue
		}
		switch msg.state {
		case mailbox.New:
			c.New++
		case mailbox.Claimed:
			c.Claimed++
		case mailbox.Done:
			c.Done++
		case mailbox.Dead:
			c.Dead++
		case mailbox.Parked:
			c.Parked++
		}
	}
	for _, s := range m.staged {
		if s.to == actor {
			c.Reserved++
		}
	}
	return c
}

func (m *model) expired(msg *modelMessage) bool {
	if msg.limitAt != 0 && m.clock >= msg.limitAt {
		return true
	}
	return !msg.auto && m.clock >= msg.expiresAt // every living process is kept
}

// swept says whether the sweep ends an expired claim: unless it was renewed until its
// actor's timeout was over, where its process is ended first.
func (m *model) swept(msg *modelMessage) bool {
	return !msg.auto && m.expired(msg) && (msg.limitAt == 0 || msg.expiresAt < msg.limitAt)
}

// judge is P3's order, for a claim named by ref.
func (m *model) judge(p *modelProcess, ref mailbox.Ref) (refusal.Category, *modelMessage) {
	if !p.alive {
		return refusal.ActorLeaseLost, nil
	}
	msg := m.messages[ref.ID]
	switch {
	case msg == nil:
		return refusal.MessageMissing, nil
	case msg.to != p.holder.Slot.Actor:
		return refusal.NotAddressee, nil
	}
	if r, ok := msg.receipts[ref.Token]; ok && r.by == p {
		if r.byWorker {
			return refusal.AlreadySettled, msg
		}
		if r.expired && msg.last == ref.Token {
			return refusal.LeaseExpired, msg
		}
	}
	if msg.state == mailbox.Claimed && msg.by == p && msg.last == ref.Token && ref.Token != 0 {
		if m.expired(msg) {
			return refusal.LeaseExpired, msg
		}
		return "", msg
	}
	return refusal.FencingTokenStale, msg
}

func (m *model) policy(name string) mailbox.Actor { return m.actors[name] }

// end is what any end of an attempt does.
func (m *model) end(msg *modelMessage, v mailbox.Verdict, c mailbox.Category, byWorker, expired bool) {
	verb := v
	if msg.cancelled && v != mailbox.Complete {
		v, c = mailbox.Kill, mailbox.CategoryCancelled
	}
	msg.receipts[msg.last] = modelReceipt{by: msg.by, byWorker: byWorker, verb: verb, expired: expired, category: c}
	a := m.policy(msg.to)
	ref := mailbox.Ref{ID: msg.id, Token: msg.last}
	delay := func(n int) time.Duration {
		d := a.Retry.Initial
		for range n - 1 {
			d *= 2
		}
		return min(d, a.Retry.Max)
	}
	wait := time.Duration(0)
	switch v {
	case mailbox.Complete:
		msg.state, msg.attempts = mailbox.Done, msg.attempts+1
	case mailbox.FailAttempt, mailbox.Unreported:
		msg.attempts++
		switch {
		case v == mailbox.Unreported && a.Park:
			msg.state = mailbox.Parked
		case msg.attempts >= a.Retry.MaxAttempts:
			msg.state = mailbox.Dead
		default:
			msg.state, wait = mailbox.New, delay(msg.attempts)
		}
	case mailbox.Kill:
		msg.state, msg.attempts = mailbox.Dead, msg.attempts+1
	case mailbox.GiveBack:
		msg.state = mailbox.New
	case mailbox.Defer:
		msg.state, wait = mailbox.New, delay(1)
	case mailbox.Interrupt:
		msg.state = mailbox.New
		if a.Park {
			msg.state = mailbox.Parked
		}
	}
	msg.dueAt = time.Time{}
	if wait > 0 {
		msg.dueAt = m.house.Now().Add(wait)
	}
	if v != mailbox.Complete {
		msg.failure = c
	}
	m.returns(msg)
	msg.by, msg.cancelled, msg.task = nil, false, false
	for _, s := range m.staged {
		if s.parent != ref {
			continue
		}
		delete(m.staged, s.id)
		if v == mailbox.Complete {
			m.messages[s.id] = &modelMessage{id: s.id, to: s.to, state: mailbox.New, priority: s.priority, content: s.content,
				key: s.key, group: s.group, ttl: s.ttl, lapsesAt: s.lapsesAt, receipts: map[fence.Token]modelReceipt{}}
		}
	}
}

func (m *model) lapsed(msg *modelMessage) bool {
	return !msg.lapsesAt.IsZero() && !m.house.Now().Before(msg.lapsesAt)
}

// returns is what becomes of a message that an end made NEW with its time to live
// over.
func (m *model) returns(msg *modelMessage) {
	if msg.state == mailbox.New && m.lapsed(msg) {
		msg.state, msg.failure, msg.dueAt = mailbox.Dead, mailbox.CategoryExpired, time.Time{}
	}
}

// blocked says whether another message of its group comes before msg: one that is
// worked on, or an earlier one that waits, for whatever reason.
func (m *model) blocked(msg *modelMessage) bool {
	for _, other := range m.messages {
		if other != msg && msg.group != "" && other.to == msg.to && other.group == msg.group &&
			(other.state == mailbox.Claimed || other.state == mailbox.New && other.id < msg.id) {
			return true
		}
	}
	return false
}

func (m *model) grant(msg *modelMessage, p *modelProcess, d mailbox.Delivery, task bool) {
	a := m.policy(msg.to)
	msg.state, msg.by, msg.task, msg.auto = mailbox.Claimed, p, task, task || a.Auto
	msg.attempt++
	msg.last, msg.dueAt = d.Token, time.Time{}
	msg.expiresAt, msg.limitAt = m.clock+a.ClaimTTL, 0
	if a.Timeout > 0 && !task {
		msg.limitAt = m.clock + a.Timeout
		msg.expiresAt = min(msg.expiresAt, msg.limitAt)
	}
	m.refs = append(m.refs, mailbox.Ref{ID: msg.id, Token: d.Token})
}

// next is the message that a claim without an id must get.
func (m *model) next(actor string) *modelMessage {
	if m.policy(actor).Paused {
		return nil
	}
	var first *modelMessage
	for _, msg := range m.messages {
		if msg.to != actor || msg.state != mailbox.New || msg.dueAt.After(m.house.Now()) || m.lapsed(msg) || m.blocked(msg) {
			continue
		}
		if first == nil || msg.priority > first.priority || msg.priority == first.priority && msg.id < first.id {
			first = msg
		}
	}
	return first
}

// refuses says whether a send must be refused or is a duplicate.
func (m *model) refuses(to, content, key string, parent *mailbox.Ref) (refusal.Category, mailbox.ID) {
	if key != "" {
		for _, msg := range m.messages {
			if msg.to == to && msg.key == key {
				if msg.content != content {
					return refusal.DuplicateKey, 0
				}
				return "", msg.id
			}
		}
		for _, s := range m.staged {
			if s.to == to && s.key == key {
				if s.content != content || parent == nil || *parent != s.parent {
					return refusal.DuplicateKey, 0
				}
				return "", s.id
			}
		}
	}
	c := m.counts(to)
	if c.New+c.Claimed+c.Reserved >= m.policy(to).Limit {
		return refusal.InboxFull, 0
	}
	return "", 0
}

func want(t *rapid.T, doing string, err error, category refusal.Category) {
	t.Helper()
	switch {
	case category == "" && err != nil:
		t.Fatalf("%s: %v (%s)", doing, err, refusal.Of(err).Category)
	case category != "" && !refusal.Has(err, category):
		t.Fatalf("%s: got %v, want %s", doing, err, category)
	}
}

// compare holds everything that can be seen against the model.
func (m *model) compare(t *rapid.T) {
	ctx := context.Background()
	box := m.house.Box
	for _, msg := range m.messages {
		d, err := box.Show(ctx, msg.id)
		if err != nil {
			t.Fatalf("show %s: %v", msg.id, err)
		}
		if d.State != msg.state || d.Attempt != msg.attempt || d.Attempts != msg.attempts || d.To != msg.to || d.Priority != msg.priority {
			t.Fatalf("%s is %s, attempt %d, charged %d; want %s, %d, %d", msg.id, d.State, d.Attempt, d.Attempts, msg.state, msg.attempt, msg.attempts)
		}
		if len(d.Receipts) != len(msg.receipts) {
			t.Fatalf("%s has %d receipts, want %d", msg.id, len(d.Receipts), len(msg.receipts))
		}
		for _, r := range d.Receipts {
			if w, ok := msg.receipts[r.Token]; !ok || w.category != r.Category || w.byWorker != r.ByWorker || w.by.holder.Process != r.Process {
				t.Fatalf("%s: receipt %+v, want %+v", msg.id, r, w)
			}
		}
		switch {
		case msg.state == mailbox.Claimed && (d.Claim == nil || d.Claim.Token != msg.last || d.Claim.Holder != msg.by.holder):
			t.Fatalf("%s: claim %+v, want token %d", msg.id, d.Claim, msg.last)
		case msg.state != mailbox.Claimed && d.Claim != nil:
			t.Fatalf("%s is %s and has a claim", msg.id, d.State)
		case msg.state == mailbox.New && msg.dueAt.After(m.house.Now()) && !d.AvailableAt.Equal(msg.dueAt):
			t.Fatalf("%s is available at %s, want %s", msg.id, d.AvailableAt, msg.dueAt)
		}
		got := mailbox.Category("")
		if d.LastFailure != nil {
			got = d.LastFailure.Category
		}
		if got != msg.failure {
			t.Fatalf("%s failed last as %q, want %q", msg.id, got, msg.failure)
		}
		if (d.BlockedBy != 0) != (msg.state == mailbox.New && m.blocked(msg)) {
			t.Fatalf("%s is %s, blocked by %s", msg.id, d.State, d.BlockedBy)
		}
		if (d.Why == "") != (msg.state == mailbox.Done || msg.state == mailbox.Claimed && !m.expired(msg)) {
			t.Fatalf("%s is %s, and why is %q", msg.id, d.State, d.Why)
		}
	}
	for _, s := range m.staged { // P8: staged sends are visible to nobody
		if _, err := box.Show(ctx, s.id); !refusal.Has(err, refusal.MessageMissing) {
			t.Fatalf("staged %s can be seen: %v", s.id, err)
		}
	}
	for name := range m.actors {
		got, err := box.Counts(ctx, name)
		if err != nil || got != m.counts(name) {
			t.Fatalf("counts of %s: %+v, want %+v, %v", name, got, m.counts(name), err)
		}
	}
	page, err := box.List(ctx, mailbox.Filter{Limit: 1000})
	if err != nil || len(page.Messages) != len(m.messages) {
		t.Fatalf("list: %d messages, want %d, %v", len(page.Messages), len(m.messages), err)
	}
	for _, p := range m.processes {
		var held []mailbox.Ref
		for _, msg := range m.messages {
			if msg.state == mailbox.Claimed && msg.by == p {
				held = append(held, mailbox.Ref{ID: msg.id, Token: msg.last})
			}
		}
		slices.SortFunc(held, func(a, b mailbox.Ref) int { return int(a.ID) - int(b.ID) })
		if got := box.Held(p.holder.Process); !slices.Equal(got, held) {
			t.Fatalf("held by %s: %v, want %v", p.holder.Slot, got, held)
		}
	}
}

func (m *model) process(t *rapid.T, alive bool) *modelProcess {
	var some []*modelProcess
	for _, p := range m.processes {
		if p.task.ID == 0 && (p.alive || !alive) {
			some = append(some, p)
		}
	}
	if len(some) == 0 {
		t.Skip("no process")
	}
	return rapid.SampledFrom(some).Draw(t, "process")
}

func (m *model) message(t *rapid.T) mailbox.ID {
	ids := slices.Sorted(maps.Keys(m.messages))
	if len(ids) == 0 {
		t.Skip("no message")
	}
	return rapid.SampledFrom(ids).Draw(t, "message")
}

// ref is a claim: most often p's own, else any that there ever was, or none.
func (m *model) ref(t *rapid.T, p *modelProcess) mailbox.Ref {
	var own []mailbox.Ref
	for _, id := range slices.Sorted(maps.Keys(m.messages)) {
		if msg := m.messages[id]; msg.state == mailbox.Claimed && msg.by == p {
			own = append(own, mailbox.Ref{ID: id, Token: msg.last})
		}
	}
	if len(own) > 0 && rapid.IntRange(0, 9).Draw(t, "own") < 7 {
		return rapid.SampledFrom(own).Draw(t, "ref")
	}
	if len(m.refs) > 0 && rapid.IntRange(0, 9).Draw(t, "old") < 8 {
		return rapid.SampledFrom(m.refs).Draw(t, "ref")
	}
	return mailbox.Ref{ID: m.message(t), Token: fence.Token(rapid.IntRange(0, 3).Draw(t, "token"))}
}

func (m *model) toActor(t *rapid.T) string {
	return rapid.SampledFrom(slices.Sorted(maps.Keys(m.actors))).Draw(t, "to")
}

// TestModel compares the mailbox with the model: P2.1-P2.6, P3.1-P3.11, P4.2-P4.4,
// P4.7, P8, over restarts, with actors whose policy is park, whose claims are
// kept or renewed by hand, and whose inboxes are small.
func TestModel(t *testing.T) {
	if checks := flag.Lookup("rapid.checks"); checks.Value.String() == checks.DefValue {
		// Enough for every day; ask for more with -rapid.checks.
		_ = checks.Value.Set("25")
		defer func() { _ = checks.Value.Set(checks.DefValue) }()
	}
	parent := mailboxtest.Dir(t)
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(parent, "model")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		ctx := context.Background()
		house := mailboxtest.New(dir)
		house.MustOpen(t)
		defer house.Check(t)
		m := &model{house: house, actors: map[string]mailbox.Actor{}, messages: map[mailbox.ID]*modelMessage{},
			staged: map[mailbox.ID]*modelStaged{}, lost: map[mailbox.Ref]string{}}
		for _, name := range []string{"auto", "manual", "park"} {
			a := mailboxtest.Actor(name)
			a.Limit = 7
			a.Auto = name == "auto"
			a.Park = name == "park"
			if name != "park" {
				a.Timeout = 25 * time.Second
			}
			m.actors[name] = a
		}
		if err := house.Box.SetActors(ctx, slices.Collect(maps.Values(m.actors))); err != nil {
			t.Fatal(err)
		}
		t.Repeat(map[string]func(*rapid.T){
			"":         m.compare,
			"send":     m.send,
			"send2":    m.send,
			"begin":    m.begin,
			"claim":    m.claim,
			"claim2":   m.claim,
			"claimID":  m.claimID,
			"settle":   m.settle,
			"settle2":  m.settle,
			"renew":    m.renew,
			"stage":    m.stage,
			"complete": m.completeWithSends,
			"advance":  m.advance,
			"sweep":    m.sweep,
			"leave":    m.leave,
			"task":     m.startTask,
			"endTask":  m.endTask,
			"retry":    m.retry,
			"drop":     m.drop,
			"cancel":   m.cancel,
			"pause":    m.pause,
			"purge":    m.purge,
			"lapse":    m.lapse,
			"reopen":   m.reopen,
		})
	})
}

func (m *model) send(t *rapid.T) {
	to := m.toActor(t)
	key := rapid.SampledFrom([]string{"", "", "k1", "k2"}).Draw(t, "key")
	body := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "body")
	priority := rapid.SampledFrom([]int{0, 0, 5}).Draw(t, "priority")
	delay := time.Duration(rapid.SampledFrom([]int{0, 0, 0, 4}).Draw(t, "delay")) * time.Second
	group := rapid.SampledFrom([]string{"", "", "g", "h"}).Draw(t, "group")
	ttl := time.Duration(rapid.SampledFrom([]int{0, 0, 0, 5}).Draw(t, "ttl")) * time.Second
	content := fmt.Sprint("|", body, priority, group)
	category, duplicate := m.refuses(to, content, key, nil)
	sent, err := m.house.Box.Send(context.Background(), mailbox.Outgoing{To: to, Body: []byte(body), Key: key, Priority: priority, Delay: delay, Group: group, TTL: ttl})
	want(t, "send", err, category)
	switch {
	case err != nil:
	case duplicate != 0:
		if !sent.Duplicate || sent.ID != duplicate {
			t.Fatalf("send: %+v, want a duplicate of %s", sent, duplicate)
		}
	default:
		if sent.Duplicate || m.messages[sent.ID] != nil {
			t.Fatalf("send: %+v is no new message", sent)
		}
		msg := &modelMessage{id: sent.ID, to: to, state: mailbox.New, priority: priority, content: content, key: key,
			group: group, ttl: ttl, receipts: map[fence.Token]modelReceipt{}}
		if ttl > 0 {
			msg.lapsesAt = m.house.Now().Add(ttl)
		}
		if delay > 0 {
			msg.dueAt = m.house.Now().Add(delay)
		}
		m.messages[sent.ID] = msg
	}
}

func (m *model) begin(t *rapid.T) {
	actor := m.toActor(t)
	slot := fence.Slot{Actor: actor, Number: rapid.IntRange(1, 2).Draw(t, "slot")}
	held := false
	for _, p := range m.processes {
		held = held || p.alive && p.holder.Slot == slot
	}
	lease, err := m.house.Box.Begin(context.Background(), slot, fence.NewProcess(), time.Minute, mailbox.Event{Kind: "started"})
	if held {
		want(t, "begin", err, refusal.ActorLeaseHeld)
		return
	}
	want(t, "begin", err, "")
	for _, p := range m.processes {
		if p.holder.Slot == slot && p.holder.Token >= lease.Token {
			t.Fatalf("begin: token %d after %d", lease.Token, p.holder.Token)
		}
	}
	m.processes = append(m.processes, &modelProcess{holder: lease.Holder(), alive: true})
}

func (m *model) claim(t *rapid.T) {
	p := m.process(t, false)
	got, err := m.house.Box.Claim(context.Background(), p.holder, mailbox.ClaimRequest{Max: rapid.IntRange(1, 2).Draw(t, "max")})
	if !p.alive {
		if m.next(p.holder.Slot.Actor) == nil && err == nil {
			t.Fatalf("a claim of a process without a lease was answered")
		}
		want(t, "claim", err, refusal.ActorLeaseLost)
		return
	}
	want(t, "claim", err, "")
	if first := m.next(p.holder.Slot.Actor); first != nil && len(got) == 0 {
		t.Fatalf("claim: nothing, and %s waits", first.id)
	}
	for _, d := range got {
		first := m.next(p.holder.Slot.Actor)
		if first == nil || first.id != d.ID {
			t.Fatalf("claim: %s, want %+v", d.ID, first)
		}
		if d.Token <= first.last || d.Attempt != first.attempt+1 {
			t.Fatalf("claim: token %d after %d, attempt %d after %d", d.Token, first.last, d.Attempt, first.attempt)
		}
		m.grant(first, p, d, false)
	}
}

func (m *model) claimID(t *rapid.T) {
	p := m.process(t, false)
	id := m.message(t)
	msg := m.messages[id]
	got, err := m.house.Box.Claim(context.Background(), p.holder, mailbox.ClaimRequest{ID: id})
	switch {
	case !p.alive:
		want(t, "claim by id", err, refusal.ActorLeaseLost)
	case msg.to != p.holder.Slot.Actor:
		want(t, "claim by id", err, refusal.NotAddressee)
	case msg.state == mailbox.New && !m.policy(msg.to).Paused && !msg.dueAt.After(m.house.Now()) && !m.lapsed(msg) && !m.blocked(msg):
		want(t, "claim by id", err, "")
		m.grant(msg, p, got[0], false)
	case msg.state == mailbox.Claimed && !m.expired(msg) && msg.by == p: // P3.3
		want(t, "claim by id", err, "")
		if got[0].Token != msg.last || got[0].Attempt != msg.attempt {
			t.Fatalf("claim again: token %d, want %d", got[0].Token, msg.last)
		}
	case msg.state == mailbox.Claimed && m.swept(msg) && m.takeover(msg):
		want(t, "claim by id", err, "") // P3.4
		if got[0].Token <= msg.last {
			t.Fatalf("takeover: token %d after %d", got[0].Token, msg.last)
		}
		m.end(msg, mailbox.Unreported, mailbox.CategoryClaimExpired, false, true)
		m.grant(msg, p, got[0], false)
	default:
		want(t, "claim by id", err, refusal.MessageNotClaimable)
	}
}

// takeover says whether a message with an expired claim can be claimed at once:
// unless its actor is paused, or that was its last attempt, or has sends to be removed first.
func (m *model) takeover(msg *modelMessage) bool {
	a := m.policy(msg.to)
	for _, s := range m.staged {
		if s.parent == (mailbox.Ref{ID: msg.id, Token: msg.last}) {
			return false
		}
	}
	for _, other := range m.messages {
		if msg.group != "" && other.to == msg.to && other.group == msg.group && other.state == mailbox.New && other.id < msg.id {
			return false // it comes first once this one is no longer worked on
		}
	}
	return !msg.cancelled && !a.Paused && !a.Park && msg.attempts+1 < a.Retry.MaxAttempts && !m.lapsed(msg)
}

var verbs = map[mailbox.Verdict]mailbox.Category{
	mailbox.Complete: mailbox.CategoryCompleted, mailbox.FailAttempt: mailbox.CategoryFailedByWorker,
	mailbox.GiveBack: mailbox.CategoryReleased, mailbox.Kill: mailbox.CategoryBadMessage,
}

func sameVerb(a, b mailbox.Verdict) bool {
	fails := func(v mailbox.Verdict) bool { return v == mailbox.FailAttempt || v == mailbox.Kill }
	return a == b || fails(a) && fails(b)
}

func (m *model) settle(t *rapid.T) {
	p := m.process(t, false)
	ref := m.ref(t, p)
	v := rapid.SampledFrom(slices.Sorted(maps.Keys(verbs))).Draw(t, "verb")
	category, msg := m.judge(p, ref)
	check := m.house.Box.Check(context.Background(), p.holder, ref)
	want(t, "check", check, category)
	got, err := m.house.Box.Settle(context.Background(), p.holder, ref,
		mailbox.Outcome{Verdict: v, Category: verbs[v], ExitCode: -1, Result: []byte("r")}, nil)
	if category == refusal.AlreadySettled && sameVerb(msg.receipts[ref.Token].verb, v) { // P3.6
		want(t, "settle again", err, "")
		if !got.Repeated {
			t.Fatalf("settle again: %+v", got)
		}
		return
	}
	want(t, "settle", err, category)
	if err != nil {
		return
	}
	m.end(msg, v, verbs[v], true, false)
	if got.State != msg.state || got.Attempts != msg.attempts {
		t.Fatalf("settle: %+v, want %s %d", got, msg.state, msg.attempts)
	}
}

func (m *model) renew(t *rapid.T) {
	p := m.process(t, false)
	ref := m.ref(t, p)
	category, msg := m.judge(p, ref)
	_, left, err := m.house.Box.Renew(context.Background(), p.holder, ref, nil)
	want(t, "renew", err, category)
	if err != nil || msg.auto {
		return
	}
	until := m.clock + m.policy(msg.to).ClaimTTL
	if msg.limitAt != 0 {
		until = min(until, msg.limitAt)
	}
	msg.expiresAt = max(msg.expiresAt, until)
	if left != msg.expiresAt-m.clock {
		t.Fatalf("renew: %s left, want %s", left, msg.expiresAt-m.clock)
	}
}

func (m *model) stage(t *rapid.T) {
	p := m.process(t, false)
	ref := m.ref(t, p)
	category, _ := m.judge(p, ref)
	to := m.toActor(t)
	key := rapid.SampledFrom([]string{"", "", "k1", "k2"}).Draw(t, "key")
	group := rapid.SampledFrom([]string{"", "g"}).Draw(t, "group")
	ttl := time.Duration(rapid.SampledFrom([]int{0, 0, 2}).Draw(t, "ttl")) * time.Second
	content := fmt.Sprint(p.holder.Slot.Actor, "|s", 0, group)
	var duplicate mailbox.ID
	if category == "" {
		category, duplicate = m.refuses(to, content, key, &ref)
	}
	sent, err := m.house.Box.Stage(context.Background(), p.holder, ref, mailbox.Outgoing{To: to, Body: []byte("s"), Key: key, Group: group, TTL: ttl})
	want(t, "stage", err, category)
	switch {
	case err != nil:
	case duplicate != 0:
		if !sent.Duplicate || sent.ID != duplicate {
			t.Fatalf("stage: %+v, want a duplicate of %s", sent, duplicate)
		}
	default:
		s := &modelStaged{id: sent.ID, to: to, content: content, key: key, parent: ref, group: group, ttl: ttl}
		if ttl > 0 {
			s.lapsesAt = m.house.Now().Add(ttl)
		}
		m.staged[sent.ID] = s
	}
}

// completeWithSends completes with sends of which one may be refused: then so is
// the completion, and the claim goes on.
func (m *model) completeWithSends(t *rapid.T) {
	p := m.process(t, true)
	ref := m.ref(t, p)
	category, msg := m.judge(p, ref)
	to, n := m.toActor(t), rapid.IntRange(1, 4).Draw(t, "sends")
	var sends []mailbox.Outgoing
	for range n {
		sends = append(sends, mailbox.Outgoing{To: to, Body: []byte("s")})
	}
	if c := m.counts(to); category == "" && c.New+c.Claimed+c.Reserved+int64(n) > m.policy(to).Limit {
		category = refusal.InboxFull
	}
	got, err := m.house.Box.Settle(context.Background(), p.holder, ref, mailboxtest.Completed("r"), sends)
	if category == refusal.AlreadySettled && msg.receipts[ref.Token].verb == mailbox.Complete {
		want(t, "complete again", err, "")
		return
	}
	want(t, "complete with sends", err, category)
	if err != nil {
		return
	}
	known := map[mailbox.ID]bool{}
	for id := range m.staged {
		known[id] = true
	}
	for _, id := range got.Visible {
		if !known[id] {
			m.staged[id] = &modelStaged{id: id, to: to, content: p.holder.Slot.Actor + "|s0", parent: ref}
		}
	}
	m.end(msg, mailbox.Complete, mailbox.CategoryCompleted, true, false)
}

func (m *model) advance(t *rapid.T) {
	d := time.Duration(rapid.SampledFrom([]int{1, 3, 10}).Draw(t, "seconds")) * time.Second
	m.house.Advance(d)
	m.clock += d
	m.house.Box.PopDue()
}

func (m *model) sweep(t *rapid.T) {
	swept, err := m.house.Box.SweepExpired(context.Background())
	want(t, "sweep", err, "")
	n := 0
	for _, msg := range m.messages {
		if msg.state == mailbox.Claimed && m.swept(msg) {
			n++
			if !slices.Contains(swept, mailbox.Ref{ID: msg.id, Token: msg.last}) {
				t.Fatalf("%s has expired and was not swept", msg.id)
			}
			m.end(msg, mailbox.Unreported, mailbox.CategoryClaimExpired, false, true)
		}
	}
	if n != len(swept) {
		t.Fatalf("%d swept, want %d", len(swept), n)
	}
}

func (m *model) leave(t *rapid.T) {
	p := m.process(t, false)
	o := rapid.SampledFrom([]mailbox.Outcome{mailboxtest.Lost("KILL"),
		{Verdict: mailbox.Interrupt, Category: mailbox.CategoryInterrupted, ExitCode: -1}}).Draw(t, "outcome")
	ended, err := m.house.Box.Leave(context.Background(), p.holder, func(mailbox.Ref) mailbox.Outcome { return o }, mailbox.Event{Kind: "exited"})
	want(t, "leave", err, "")
	n := 0
	for _, msg := range m.messages {
		if msg.state == mailbox.Claimed && msg.by == p {
			n++
			m.end(msg, o.Verdict, o.Category, false, false)
		}
	}
	if n != len(ended) {
		t.Fatalf("leave ended %d, want %d", len(ended), n)
	}
	p.alive = false
}

func (m *model) startTask(t *rapid.T) {
	actor := m.toActor(t)
	first := m.next(actor)
	slot := fence.Slot{Actor: actor, Number: 3}
	held := false
	for _, p := range m.processes {
		held = held || p.alive && p.holder.Slot == slot
	}
	if first == nil {
		t.Skip("nothing to start")
	}
	lease, d, err := m.house.Box.StartTask(context.Background(), slot, fence.NewProcess(), time.Minute)
	if held {
		want(t, "start a task", err, refusal.ActorLeaseHeld)
		return
	}
	want(t, "start a task", err, "")
	if d.ID != first.id {
		t.Fatalf("started %s, want %s", d.ID, first.id)
	}
	p := &modelProcess{holder: lease.Holder(), alive: true, task: mailboxtest.RefOf(d)}
	m.processes = append(m.processes, p)
	m.grant(first, p, d, true)
}

func (m *model) endTask(t *rapid.T) {
	i := slices.IndexFunc(m.processes, func(p *modelProcess) bool { return p.alive && p.task.ID != 0 })
	if i < 0 {
		t.Skip("no task")
	}
	p := m.processes[i]
	msg := m.messages[p.task.ID]
	if rapid.IntRange(0, 3).Draw(t, "unstart") == 0 {
		want(t, "unstart", m.house.Box.Unstart(context.Background(), p.holder, p.task, mailbox.Event{Kind: "spawn_failed"}), "")
		msg.attempt--
		msg.state = mailbox.New
		if msg.cancelled {
			msg.state, msg.failure = mailbox.Dead, mailbox.CategoryCancelled
		}
		m.returns(msg)
		for _, s := range m.staged {
			if s.parent == p.task {
				t.Fatalf("a task that never ran has staged sends")
			}
		}
		msg.by, msg.cancelled, p.alive = nil, false, false
		return
	}
	o := rapid.SampledFrom([]mailbox.Outcome{mailboxtest.Completed("out"),
		{Verdict: mailbox.FailAttempt, Category: mailbox.CategoryExitStatus, ExitCode: 1},
		{Verdict: mailbox.Defer, Category: mailbox.CategoryDeferred, ExitCode: 75},
		mailboxtest.Lost("SEGV")}).Draw(t, "outcome")
	_, err := m.house.Box.EndTask(context.Background(), p.holder, p.task, o)
	want(t, "end a task", err, "")
	m.end(msg, o.Verdict, o.Category, false, false)
	p.alive = false
}

func (m *model) retry(t *rapid.T) {
	msg := m.messages[m.message(t)]
	err := m.house.Box.Retry(context.Background(), msg.id)
	if msg.state != mailbox.Dead && msg.state != mailbox.Parked {
		want(t, "retry", err, refusal.WrongState)
		return
	}
	want(t, "retry", err, "")
	msg.state, msg.attempts, msg.dueAt = mailbox.New, 0, time.Time{}
	if msg.ttl > 0 {
		msg.lapsesAt = m.house.Now().Add(msg.ttl)
	}
}

func (m *model) drop(t *rapid.T) {
	msg := m.messages[m.message(t)]
	err := m.house.Box.Drop(context.Background(), msg.id)
	if msg.state == mailbox.Claimed {
		want(t, "drop", err, refusal.WrongState)
		return
	}
	want(t, "drop", err, "")
	delete(m.messages, msg.id)
}

func (m *model) purge(t *rapid.T) {
	s := rapid.SampledFrom([]mailbox.State{mailbox.Done, mailbox.Dead}).Draw(t, "state")
	n, err := m.house.Box.Purge(context.Background(), s, 0)
	want(t, "purge", err, "")
	for id, msg := range m.messages {
		if msg.state == s {
			n--
			delete(m.messages, id)
		}
	}
	if n != 0 {
		t.Fatalf("purged %d too many", n)
	}
}

func (m *model) lapse(t *rapid.T) {
	want(t, "end what has lapsed", m.house.Box.LapseDue(context.Background()), "")
	for _, msg := range m.messages {
		m.returns(msg)
	}
}

func (m *model) cancel(t *rapid.T) {
	msg := m.messages[m.message(t)]
	got, err := m.house.Box.Cancel(context.Background(), msg.id)
	switch msg.state {
	case mailbox.New, mailbox.Parked:
		want(t, "cancel", err, "")
		msg.state, msg.failure = mailbox.Dead, mailbox.CategoryCancelled
	case mailbox.Claimed:
		want(t, "cancel", err, "")
		if !got.Running || got.Holder != msg.by.holder || got.Ref.Token != msg.last {
			t.Fatalf("cancel: %+v", got)
		}
		msg.cancelled = true
		if !msg.task && rapid.Bool().Draw(t, "take it away") {
			expired := m.expired(msg)
			done, err := m.house.Box.EndCancelled(context.Background(), got.Holder, got.Ref)
			if !done {
				t.Fatalf("end of the cancelled: %v", err)
			}
			want(t, "end the cancelled", err, "")
			m.end(msg, mailbox.Kill, mailbox.CategoryCancelled, false, expired)
		}
	default:
		want(t, "cancel", err, refusal.WrongState)
	}
}

func (m *model) pause(t *rapid.T) {
	name := m.toActor(t)
	a := m.actors[name]
	a.Paused = !a.Paused
	want(t, "pause", m.house.Box.SetPaused(context.Background(), name, a.Paused), "")
	m.actors[name] = a
}

// reopen is the death of the supervisor and of its children, and a restart.
func (m *model) reopen(t *rapid.T) {
	m.house.Reopen(t)
	for _, msg := range m.messages {
		if msg.state != mailbox.Claimed {
			continue
		}
		category := mailbox.CategoryWorkerLost
		if !msg.auto && m.clock >= msg.expiresAt {
			category = mailbox.CategoryClaimExpired
		}
		m.end(msg, mailbox.Unreported, category, false, category == mailbox.CategoryClaimExpired)
	}
	for _, p := range m.processes {
		p.alive = false
	}
	r := recovery.New(m.house.Box, recovery.NewWorkspaces(m.house.Dir), nil)
	if _, err := r.Reconcile(context.Background(), nil); err != nil {
		t.Fatalf("reconcile: %v", err)
	}
	again, err := r.Reconcile(context.Background(), nil)
	if err != nil || !again.Empty() {
		t.Fatalf("a second pass did something: %+v, %v", again, err)
	}
	m.house.Box.PopDue()
	m.house.Verify(t)
}
