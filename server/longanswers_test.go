package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/protocol"
)

// An answer has a line's room, whatever messages hold. Of a list with headers and
// subjects as long as can be the page ends before the line is full, and the cursor leads
// on: nothing is left out, nothing comes twice. Take listedAtMost out of inboxList and
// this fails.
func TestInboxList_EndsAPageBeforeTheLineIsFull(t *testing.T) {
	h := newHouse(t)
	people := h.people()
	one := fmt.Sprintf(`{"to":"resize","subject":%q,"headers":{"h":"%s"}}`, strings.Repeat("<", 1024), strings.Repeat(`\u0001`, 4095))
	sent := 0
	for range 2 {
		l := people.ask("send.batch", `{"messages":[`+strings.Repeat(one+",", 139)+one+`]}`)
		for l.Error == nil && len(l.Result) == 0 { // progress
			l = people.read()
		}
		sent += len(into[protocol.SendBatchResult](t, l).Messages)
	}
	for _, newest := range []bool{false, true} {
		seen := map[string]bool{}
		after, pages := "", 0
		for ; pages == 0 || after != ""; pages++ {
			page := into[protocol.Inbox](t, people.ask("inbox.list", protocol.InboxListParams{Limit: 1000, After: after, Newest: newest}))
			if len(page.Messages) == 0 {
				t.Fatal("a page without messages, of a list in which all match")
			}
			for _, m := range page.Messages {
				if seen[m.ID] {
					t.Fatalf("%s comes twice", m.ID)
				}
				seen[m.ID] = true
			}
			after = page.Next
		}
		if len(seen) != sent || pages != 2 {
			t.Errorf("newest %v: %d messages on %d pages, want %d on 2", newest, len(seen), pages, sent)
		}
	}
}

// A message whose attempts have left very many receipts, or long ones, is shown and
// awaited as any other: of the receipts the last are told, and how many are left out.
// Remove shownBytes and this fails: no line would hold them, and whoever waits for the
// message would never learn how it ended.
func TestInboxShow_OfVeryManyReceiptsTheLast(t *testing.T) {
	h := newHouse(t)
	people := h.people()
	id := h.send("resize", "x")
	holder := h.birth("resize", 1, config.Worker)
	worker, _ := h.channel(holder)
	reason := strings.Repeat(`"`, 4096)
	const failures = 135
	for range failures {
		d := into[protocol.ClaimResult](t, worker.ask("claim", protocol.ClaimParams{ID: id})).Messages[0]
		want(t, worker.ask("fail", protocol.FailParams{ID: id, Token: d.Token, Reason: reason, Dead: true}), "")
		want(t, people.ask("inbox.retry", protocol.InboxIDsParams{IDs: []string{id}}), "")
	}
	d := worker.claimOne()
	want(t, worker.ask("complete", protocol.CompleteParams{ID: d.ID, Token: d.Token}), "")
	for _, method := range []string{"inbox.show", "await"} {
		m := into[protocol.MessageDetail](t, people.ask(method, protocol.InboxShowParams{ID: id}))
		n := len(m.Receipts)
		if m.State != protocol.MessageDone || n == 0 || n+m.Omitted != failures+1 || m.Omitted == 0 {
			t.Fatalf("%s: %s, %d receipts, %d left out, of %d attempts", method, m.State, n, m.Omitted, failures+1)
		}
		if first, last := m.Receipts[0], m.Receipts[n-1]; first.Attempt != m.Omitted+1 || last.Attempt != failures+1 || last.Category != "completed" {
			t.Errorf("%s: the receipts of attempts %d to %d, the last %s", method, first.Attempt, last.Attempt, last.Category)
		}
	}
}

// An answer repeats the id of its request: one that is so long that no answer would fit
// into a line, or no text, is refused as what is no request, and the next one is answered.
// Remove maxID and the first is never answered.
func TestRequest_WithAnIDThatNoAnswerCanRepeat(t *testing.T) {
	people := newHouse(t).people()
	for _, id := range []string{strings.Repeat("i", protocol.MaxLine-60), strings.Repeat("i", 1023), "\xff"} {
		people.write(`{"jsonrpc":"2.0","id":"` + id + `","method":"hello"}`)
		if l := want(t, people.read(), "bad_request"); !strings.Contains(l.Error.Data.Why, "id must be a number, a string of UTF-8") {
			t.Errorf("an id of %d bytes: %+v", len(id), l.Error)
		}
	}
	longest := strings.Repeat("i", 1022)
	people.write(`{"jsonrpc":"2.0","id":"` + longest + `","method":"hello"}`)
	want(t, people.read(), "")
}
