package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
)

// Bad input over the sockets: a cursor or a time that is none, a batch that is too
// large, a line that is no JSON, one message twice. Each is refused with what is wrong,
// why, and what to do next, and nothing changes: no message, no count, no event. The
// script bad_input does the same with commands.
func TestBadInput_ChangesNothing(t *testing.T) {
	h := newHouse(t)
	people := h.people()
	first, second := h.send("resize", "x"), h.send("resize", "y")
	holder := h.birth("resize", 1, config.Worker)
	worker, _ := h.channel(holder)
	d := worker.claimOne()
	claim := fmt.Sprintf(`"id":%q,"token":%d`, d.ID, d.Token)
	items := func(n int) string { return strings.TrimSuffix(strings.Repeat(`{"complete":{`+claim+`}},`, n), ",") }
	messages := func(n int) string { return strings.TrimSuffix(strings.Repeat(`{"to":"other","body":"x"},`, n), ",") }

	before := h.record()
	for _, c := range []struct {
		by             *peer
		method, params string
		what           string // a part of the message or the reason
	}{
		{people, "inbox.list", `{"after":"zzz"}`, `"zzz" is no cursor`},
		{people, "inbox.list", `{"after":7}`, "after must be a string"},
		{people, "inbox.list", `{"after":"m0"}`, "is no cursor"},
		{people, "inbox.list", `{"state":"OLD"}`, "is no state"},
		{people, "inbox.list", `{"older":"yesterday"}`, "older must be a duration"},
		{people, "inbox.list", `{"limit":-1}`, "limit is negative"},
		{people, "events.list", `{"limit":-1}`, "limit is negative"},

		{people, "send", `{"to":"other","at":"yesterday"}`, `"yesterday" is no time: write it as`},
		{people, "send", `{"to":"other","at":5}`, "a time must be a string: write it as"},
		{people, "send", `{"to":"other","at":"9999-12-31T00:00:00Z"}`, "a time is too far away"},
		{people, "send", `{"to":"other","delay":"5"}`, "delay must be a duration"},
		{people, "send.batch", `{"messages":[{"to":"other"},{"to":"other","ttl":"-5s"}]}`, "messages.ttl must be a duration"},
		{people, "send.batch", `{"messages":[{"to":"other"},{"to":"other","at":"9999-12-31T00:00:00Z"}]}`, "message 2 of the batch: the message cannot be sent: a time is too far away"},
		{worker, "claim", `{"wait":"-5s"}`, "wait must be a duration"},
		{worker, "claim", `{"id":""}`, `"" is no message id`}, // and no claim of any other message
		{worker, "fail", `{` + claim + `,"reason":"x","delay":"5"}`, "delay must be a duration"},
		{worker, "complete", `{` + claim + `,"send":[{"to":"other","delay":"5"}]}`, "send.delay must be a duration"},
		{worker, "complete", `{` + claim + `,"next":{"wait":"soon"}}`, "next.wait must be a duration"},

		{people, "send.batch", `{"messages":[` + messages(mailbox.MaxBatch+1) + `]}`, "the batch has 10001 messages"},
		{people, "inbox.cancel", `{"ids":[` + strings.Repeat(`"m1",`, 1000) + `"m1"]}`, "ids holds 1001 ids"},
		{worker, "settle", `{"items":[` + items(1001) + `]}`, "items are too many"},

		{people, "inbox.cancel", fmt.Sprintf(`{"ids":[%q,%q,%q]}`, first, second, first), "ids names " + first + " twice"},
		{people, "inbox.drop", fmt.Sprintf(`{"ids":[%q,%q]}`, second, second), "ids names " + second + " twice"},
		{people, "inbox.retry", fmt.Sprintf(`{"ids":[%q,%q]}`, second, second), "ids names " + second + " twice"},
		{people, "send.batch", `{"messages":[{"to":"other","body":"a","key":"k"},{"to":"other","body":"b","key":"k"}]}`, "message 2 of the batch: the key"},
	} {
		l := c.by.ask(c.method, json.RawMessage(c.params))
		if l.Error == nil {
			t.Errorf("%s %.80s was answered", c.method, c.params)
			continue
		}
		if said := l.Error.Message + ": " + l.Error.Data.Why; !strings.Contains(said, c.what) || l.Error.Data.Why == "" || l.Error.Data.Next == "" {
			t.Errorf("%s %.80s: %q, next %q; want %q", c.method, c.params, said, l.Error.Data.Next, c.what)
		}
	}
	for _, line := range []string{`{"jsonrpc":"2.0","id":1,"method":"send","params":{"to":"other"}`, `{"jsonrpc":"2.0","id":1,"method":"send","params":{"to":"other",}}`,
		`{"jsonrpc":"2.0","id":1,"method":"send","params":{"to":"other"}}{}`} {
		people.write(line)
		if l := want(t, people.read(), "bad_request"); l.Error.Data.Why == "" || l.Error.Data.Next == "" {
			t.Errorf("%s: %+v", line, l.Error)
		}
	}
	if after := h.record(); after != before {
		t.Errorf("refused, and yet\n%s became\n%s", before, after)
	}

	// An import is durable up to what is refused.
	in := into[protocol.InboxImported](t, people.ask("inbox.import", json.RawMessage(
		`{"messages":[{"id":"m7","to":"other","state":"DEAD"},{"id":"m7","to":"other","state":"DEAD"},{"id":"m8","to":"other","state":"DEAD"}]}`)))
	if len(in.Messages) != 1 || in.Error == nil || !strings.Contains(in.Error.Message, "the id m7 comes a second time") || in.Error.Data.Next == "" {
		t.Errorf("imported %+v", in)
	}
	// In a settle each item is judged alone, in order: the second end of a message is a
	// repeat, or refused, and changes nothing.
	ends := into[protocol.SettleResult](t, worker.ask("settle", json.RawMessage(
		`{"items":[{"complete":{`+claim+`,"result":"1"}},{"complete":{`+claim+`,"result":"2"}},{"fail":{`+claim+`}}]}`))).Results
	if len(ends) != 3 || ends[0].State != "DONE" || ends[1].State != "DONE" || ends[2].Error == nil || ends[2].Error.Data.Category != "already_settled" {
		t.Errorf("settled %+v", ends)
	}
	if got := h.detail(d.ID); string(got.Result) != "1" || len(got.Receipts) != 1 {
		t.Errorf("%+v", got)
	}
}

// record is all that can be seen of the mailbox: messages, counts, and the journal.
func (h *house) record() string {
	page, err := h.box.List(h.t.Context(), mailbox.Filter{Limit: 1000})
	if err != nil {
		h.t.Fatal(err)
	}
	for i := range page.Messages {
		if c := page.Messages[i].Claim; c != nil {
			c.Remaining, c.ExpiresAt = 0, time.Time{} // time goes on
		}
	}
	counts, err := h.box.AllCounts(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	events, _, err := h.box.Events(h.t.Context(), 0, 1000)
	if err != nil {
		h.t.Fatal(err)
	}
	text, err := json.Marshal([]any{page.Messages, counts, events})
	if err != nil {
		h.t.Fatal(err)
	}
	return string(text)
}
