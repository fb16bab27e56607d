package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/server"
)

// What people do with messages, over the socket.
func TestControl_Inbox(t *testing.T) {
	h := newHouse(t)
	p := h.people()
	sent := into[protocol.SendResult](t, p.ask("send", `{"to":"resize","body":"b","subject":"s","from":"me","headers":{"k":"v"},"key":"k1"}`))
	again := into[protocol.SendResult](t, p.ask("send", `{"to":"resize","body":"b","subject":"s","from":"me","headers":{"k":"v"},"key":"k1"}`))
	if again.ID != sent.ID || !again.Duplicate || sent.Duplicate {
		t.Fatalf("sent %+v, again %+v", sent, again)
	}
	want(t, p.ask("send", `{"to":"resize","body":"other","key":"k1"}`), "duplicate_key")
	want(t, p.ask("send", `{"to":"nobody","body":"b"}`), "unknown_actor")
	want(t, p.ask("send", `{"to":"db","body":"b"}`), "unknown_actor")
	want(t, p.ask("send", `{"to":"resize","body":"b","claim":{"id":"m1","token":1}}`), "bad_request")

	binary := into[protocol.SendResult](t, p.ask("send", `{"to":"resize","body":{"base64":"/wA="}}`))
	list := into[protocol.Inbox](t, p.ask("inbox.list", `{"actor":"resize","limit":1}`))
	if len(list.Messages) != 1 || list.Next == "" || list.Messages[0].ID != sent.ID {
		t.Fatalf("list %+v", list)
	}
	list = into[protocol.Inbox](t, p.ask("inbox.list", fmt.Sprintf(`{"actor":"resize","state":"new","after":%q}`, list.Next)))
	if len(list.Messages) != 1 || list.Messages[0].ID != binary.ID || list.Next != "" {
		t.Fatalf("second page %+v", list)
	}
	want(t, p.ask("inbox.list", `{"state":"SLEEPING"}`), "bad_request")
	show := into[protocol.MessageDetail](t, p.ask("inbox.show", fmt.Sprintf(`{"id":%q}`, sent.ID)))
	if show.Body == nil || *show.Body != "b" || show.Subject != "s" || show.From != "me" || show.Headers["k"] != "v" || show.Why == "" || show.Receipts == nil {
		t.Fatalf("show %+v", show)
	}
	show = into[protocol.MessageDetail](t, p.ask("inbox.show", fmt.Sprintf(`{"id":%q}`, binary.ID)))
	if show.Body != nil || string(show.BodyBase64) != "\xff\x00" {
		t.Fatalf("binary body %v %q", show.Body, show.BodyBase64)
	}
	want(t, p.ask("inbox.show", `{"id":"m99"}`), "message_missing")

	changed := into[protocol.InboxChanged](t, p.ask("inbox.cancel", fmt.Sprintf(`{"ids":[%q,"m99","x"]}`, sent.ID)))
	if len(changed.Results) != 3 || changed.Results[0].State != "DEAD" || changed.Results[1].Error.Data.Category != "message_missing" ||
		changed.Results[2].Error.Data.Category != "bad_request" {
		t.Fatalf("cancelled %+v", changed.Results)
	}
	changed = into[protocol.InboxChanged](t, p.ask("inbox.retry", fmt.Sprintf(`{"ids":[%q,%q]}`, sent.ID, binary.ID)))
	if changed.Results[0].State != "NEW" || changed.Results[1].Error.Data.Category != "wrong_state" {
		t.Fatalf("retried %+v", changed.Results)
	}
	changed = into[protocol.InboxChanged](t, p.ask("inbox.drop", fmt.Sprintf(`{"ids":[%q]}`, sent.ID)))
	if changed.Results[0].Error != nil || changed.Results[0].State != "" {
		t.Fatalf("dropped %+v", changed.Results)
	}
	purged := into[protocol.InboxPurged](t, p.ask("inbox.purge", `{"state":"NEW"}`))
	if purged.Removed != 1 {
		t.Fatalf("purged %d, want 1", purged.Removed)
	}
	want(t, p.ask("inbox.purge", `{}`), "bad_request")
	want(t, p.ask("inbox.purge", `{"state":"CLAIMED"}`), "bad_request")
	verified := into[protocol.Verified](t, p.ask("verify", `{}`))
	if verified.Problems == nil || len(verified.Problems) != 0 {
		t.Fatalf("verified %+v", verified)
	}
}

// P10: an identity never appears whole in what people see, also not in an
// error; nor does any worker's answer repeat it.
func TestControl_ShortensIdentities(t *testing.T) {
	h := newHouse(t)
	id := h.send("resize", "x")
	holder := h.birth("resize", 1, config.Worker)
	w, _ := h.channel(holder)
	d := w.claimOne()
	p := h.people()
	var seen strings.Builder
	for _, ask := range [][2]string{
		{"inbox.show", fmt.Sprintf(`{"id":%q}`, id)}, {"inbox.list", `{}`}, {"status", `{}`}, {"leases.list", `{}`}, {"events.list", `{}`},
		{"leases.reset", `{"actor":"resize"}`},
	} {
		l := p.ask(ask[0], ask[1])
		fmt.Fprintf(&seen, "%s %s %+v\n", ask[0], l.Result, l.Error)
	}
	want(t, w.ask("complete", map[string]any{"id": id, "token": d.Token}), "")
	l := p.ask("inbox.show", fmt.Sprintf(`{"id":%q}`, id))
	fmt.Fprintf(&seen, "%s", l.Result)
	s := h.shell()
	bad := s.ask("ping", protocol.Identity{Process: string(holder.Process) + "x"})
	fmt.Fprintf(&seen, "%+v", bad.Error)
	if strings.Contains(seen.String(), string(holder.Process)) {
		t.Fatalf("the whole identity is shown:\n%s", seen.String())
	}
	if !strings.Contains(seen.String(), holder.Process.Short()) {
		t.Fatalf("not even the short identity %s is shown", holder.Process.Short())
	}
}

// await is answered when the message has ended, with its result; or with what is
// known when the time is up.
func TestControl_Await(t *testing.T) {
	h := newHouse(t)
	id := h.send("resize", "x")
	p, q := h.people(), h.people()
	late := into[protocol.MessageDetail](t, p.ask("await", fmt.Sprintf(`{"id":%q,"timeout":"10ms"}`, id)))
	if late.State != "NEW" {
		t.Fatalf("after the timeout it is %s", late.State)
	}
	q.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"await","params":{"id":%q}}`, id))
	w, _ := h.channel(h.birth("resize", 1, config.Worker))
	d := w.claimOne()
	want(t, w.ask("complete", map[string]any{"id": id, "token": d.Token, "result": "r"}), "")
	got := into[protocol.MessageDetail](t, q.read())
	if got.State != "DONE" || got.Result == nil || *got.Result != "r" {
		t.Fatalf("awaited %+v", got)
	}
	want(t, p.ask("await", `{"id":"m77"}`), "message_missing")
}

// events.list waits for the next event, of one actor if asked.
func TestControl_Events(t *testing.T) {
	h := newHouse(t)
	h.birth("resize", 1, config.Worker)
	p := h.people()
	first := into[protocol.Events](t, p.ask("events.list", `{}`))
	if len(first.Events) == 0 || first.Events[0].Kind != "started" || first.Next == 0 {
		t.Fatalf("events %+v", first)
	}
	if got := into[protocol.Events](t, p.ask("events.list", fmt.Sprintf(`{"after":%d,"wait":"10ms"}`, first.Next))); len(got.Events) != 0 || got.Next != first.Next {
		t.Fatalf("events %+v", got)
	}
	p.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"events.list","params":{"after":%d,"wait":"1h","actor":"other"}}`, first.Next))
	h.birth("resize", 2, config.Worker)
	h.birth("other", 1, config.Worker)
	got := into[protocol.Events](t, p.read())
	if len(got.Events) != 1 || got.Events[0].Actor != "other" || got.Next <= first.Next {
		t.Fatalf("events %+v", got)
	}
}

// Leases are listed with what is left, and reset by a person unless a living
// process holds them (P1.9).
func TestControl_Leases(t *testing.T) {
	h := newHouse(t)
	holder := h.birth("resize", 1, config.Worker)
	p := h.people()
	got := into[protocol.Leases](t, p.ask("leases.list", `{}`))
	if len(got.Leases) != 1 || got.Leases[0].Actor != "resize" || got.Leases[0].Token != protocol.Token(holder.Token) || got.Leases[0].Expired || got.Leases[0].RemainingMS <= 0 {
		t.Fatalf("leases %+v", got)
	}
	want(t, p.ask("leases.reset", `{"actor":"resize"}`), "actor_lease_held")
	want(t, p.ask("leases.reset", `{}`), "bad_request")
	h.leases.Drop(holder.Slot, holder.Token)
	if got := into[protocol.LeasesReset](t, p.ask("leases.reset", `{"actor":"resize"}`)); got.Reset != 1 {
		t.Fatalf("reset %+v", got)
	}
	if got := into[protocol.LeasesReset](t, p.ask("leases.reset", `{"actor":"resize","slot":1}`)); got.Reset != 0 {
		t.Fatalf("reset again %+v", got)
	}
}

// Without a supervisor what can be recorded is, and the rest is refused; a running
// attempt that is cancelled ends at once. It is the same handler in process.
func TestControl_WithoutSupervisor(t *testing.T) {
	h := newHouse(t)
	ask := func(method, params string) (any, error) {
		return h.control.Handle(t.Context(), method, json.RawMessage(params))
	}
	for _, method := range []string{"actor.stop", "actor.pause"} {
		if _, err := ask(method, `{"actor":"resize"}`); err != nil {
			t.Fatalf("%s: %v", method, err)
		}
	}
	sent, err := ask("send", `{"to":"resize","body":"b"}`)
	if err != nil || sent.(protocol.SendResult).Recipient != "stopped" { // report 4.9 #82
		t.Fatalf("send %+v %v", sent, err)
	}
	got, err := ask("status", `{"actor":"resize"}`)
	if err != nil {
		t.Fatal(err)
	}
	status := got.(protocol.Status)
	if status.Supervisor.State != "stopped" || len(status.Actors) != 1 || status.Actors[0].State != "stopped" || !status.Actors[0].Paused || status.Actors[0].Inbox.New != 1 {
		t.Fatalf("status %+v", status)
	}
	for method, params := range map[string]string{"actor.restart": `{"actor":"resize"}`, "actor.signal": `{"actor":"resize","signal":"HUP"}`, "shutdown": ``} {
		if _, err := ask(method, params); protocol.ErrorOf(err) == nil || protocol.ErrorOf(err).Data.Category != "unavailable" {
			t.Errorf("%s: %v, want unavailable", method, err)
		}
	}
	for _, bad := range [][2]string{{"no.such", ``}, {"status", `{"actor":"ghost"}`}, {"actor.start", `{"actor":"ghost"}`}} {
		if _, err := ask(bad[0], bad[1]); err == nil {
			t.Errorf("%v: no error", bad)
		}
	}
	for _, method := range []string{"actor.start", "actor.resume"} {
		if _, err := ask(method, `{"actor":"resize"}`); err != nil {
			t.Fatalf("%s: %v", method, err)
		}
	}
	id := h.send("other", "x")
	w, _ := h.channel(h.birth("other", 1, config.Worker))
	d := w.claimOne()
	changed, err := ask("inbox.cancel", fmt.Sprintf(`{"ids":[%q]}`, id))
	if err != nil || changed.(protocol.InboxChanged).Results[0].State != "DEAD" {
		t.Fatalf("cancelled %+v %v", changed, err)
	}
	if l := w.ask("complete", map[string]any{"id": id, "token": d.Token}); l.Error == nil {
		t.Fatal("a cancelled attempt completed")
	}
}

// operator is a supervisor that records what it is asked, and ends a cancelled
// attempt by way of the box, as the real one does once the process is dead.
type operator struct {
	box   *mailbox.Box
	mu    sync.Mutex // guards calls
	calls []string
}

func (o *operator) note(format string, args ...any) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls = append(o.calls, fmt.Sprintf(format, args...))
	return nil
}
func (o *operator) Status() protocol.Status {
	return protocol.Status{Actors: []protocol.ActorStatus{{Actor: "resize", Mode: "worker", State: "running"}}}
}
func (o *operator) HasFailed(string) bool                       { return false }
func (o *operator) Start(_ context.Context, a string) error     { return o.note("start %s", a) }
func (o *operator) Stop(_ context.Context, a string) error      { return o.note("stop %s", a) }
func (o *operator) Restart(_ context.Context, a string) error   { return o.note("restart %s", a) }
func (o *operator) Signal(_ context.Context, a, s string) error { return o.note("signal %s %s", a, s) }
func (o *operator) Pause(_ context.Context, a string) error     { return o.note("pause %s", a) }
func (o *operator) Resume(_ context.Context, a string) error    { return o.note("resume %s", a) }
func (o *operator) ReopenLogs()                                 { _ = o.note("reopen logs") }
func (o *operator) Reload(context.Context, bool) (protocol.Reload, error) {
	return protocol.Reload{}, o.note("reload")
}
func (o *operator) Shutdown() { _ = o.note("shutdown") }
func (o *operator) Cancel(ctx context.Context, h fence.Holder, ref mailbox.Ref) error {
	_ = o.note("cancel %s", ref.ID)
	_, err := o.box.EndCancelled(ctx, h, ref)
	return err
}

// With a supervisor its methods are what is called, each once.
func TestControl_AsksTheSupervisor(t *testing.T) {
	h := newHouse(t)
	o := &operator{box: h.box}
	c := server.NewControl(h.box, o, "v1", h.data)
	id := h.send("resize", "x")
	w, _ := h.channel(h.birth("resize", 1, config.Worker))
	w.claimOne()
	var wanted []string
	for _, ask := range [][3]string{
		{"actor.start", `{"actor":"resize"}`, "start resize"}, {"actor.stop", `{"actor":"resize"}`, "stop resize"},
		{"actor.restart", `{"actor":"resize"}`, "restart resize"}, {"actor.signal", `{"actor":"resize","signal":"HUP"}`, "signal resize HUP"},
		{"actor.pause", `{"actor":"resize"}`, "pause resize"}, {"actor.resume", `{"actor":"resize"}`, "resume resize"},
		{"inbox.cancel", fmt.Sprintf(`{"ids":[%q]}`, id), "cancel " + id}, {"shutdown", ``, "shutdown"},
	} {
		if _, err := c.Handle(t.Context(), ask[0], json.RawMessage(ask[1])); err != nil {
			t.Fatalf("%s: %v", ask[0], err)
		}
		wanted = append(wanted, ask[2])
	}
	if got, want := strings.Join(o.calls, "\n"), strings.Join(wanted, "\n"); got != want {
		t.Errorf("asked\n%s\nwant\n%s", got, want)
	}
	if _, err := c.Handle(t.Context(), "actor.signal", json.RawMessage(`{"actor":"resize"}`)); err == nil {
		t.Error("no signal given: no error")
	}
	got, err := c.Handle(t.Context(), "status", nil)
	if err != nil {
		t.Fatal(err)
	}
	s := got.(protocol.Status)
	if s.Supervisor.State != "running" || s.Supervisor.PID == 0 || s.Supervisor.Version != "v1" || s.Actors[0].Inbox.Dead != 1 || s.Actors[0].Slots == nil {
		t.Errorf("status %+v", s)
	}
}

func (o *operator) Upgrade(context.Context, string) (string, error) { return "", nil }

func (o *operator) Upgraded(context.Context, string) (protocol.Upgrade, error) {
	return protocol.Upgrade{}, nil
}

// An import that is refused says in a field of its own which line that was, also where
// it is the first, and none where it is no message's fault; who goes on from there reads
// no text. Answer the first with an error alone and this fails.
func TestControl_ImportNamesTheLine(t *testing.T) {
	h := newHouse(t)
	p := h.people()
	good, bad := `{"to":"resize","state":"DEAD","body":"a","line":%d}`, `{"to":"nobody","state":"DEAD","body":"line 9: a","line":%d}`
	for _, c := range []struct {
		lines      []string
		sent, line int
		category   string
	}{
		{[]string{good, good}, 2, 0, ""},
		{[]string{bad, good}, 0, 11, "unknown_actor"},
		{[]string{good, good, bad, good}, 2, 13, "unknown_actor"},
		{[]string{`{"to":"resize","state":"OLD","body":"a","line":%d}`}, 0, 11, "bad_request"},
	} {
		var list []string
		for i, line := range c.lines {
			list = append(list, fmt.Sprintf(line, 11+i))
		}
		got := into[protocol.InboxImported](t, p.ask("inbox.import", `{"messages":[`+strings.Join(list, ",")+`]}`))
		category := ""
		if got.Error != nil {
			category = string(got.Error.Data.Category)
		}
		if len(got.Messages) != c.sent || got.Line != c.line || category != c.category {
			t.Errorf("%s: got %+v, %s", list, got, category)
		}
	}
}
