package main

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

// sound is a history without fault: m1 is sent with a key, twice; p1 claims it and
// dies; p2 claims it, stages m2 and fails; p3 stages m3, renews, completes, and
// repeats the completion; p2 comes late. m3 is cancelled.
func sound() Evidence {
	text := func(s string) *string { return new(s) }
	receipt := func(attempt int, token protocol.Token, process string, lease protocol.Token, status, category string, byWorker bool) protocol.Receipt {
		return protocol.Receipt{Attempt: attempt, Token: token, LeaseToken: lease, Process: process, Actor: "press", Slot: 1,
			Status: status, Category: category, Counted: true, ByWorker: byWorker}
	}
	m1 := protocol.MessageDetail{Message: protocol.Message{ID: "m1", To: "press", Subject: "1/a", State: "DONE", Attempt: 3, Attempts: 3},
		Body: text("1/a"), Result: text("m1 under 9"), Receipts: []protocol.Receipt{
			receipt(1, 2, "p1", 1, "failed", "worker_lost", false),
			receipt(2, 5, "p2", 4, "failed", "failed_by_worker", true),
			receipt(3, 9, "p3", 8, "completed", "completed", true),
		}}
	m3 := protocol.MessageDetail{Message: protocol.Message{ID: "m3", To: "bind", Subject: "0/a.3s0", State: "DEAD"}, Body: text("0/a.3s0")}
	grant := func(token protocol.Token, attempt int) []Grant {
		return []Grant{{Message: "m1", Token: token, Attempt: attempt, Nonce: "1/a"}}
	}
	begin := func(log, process string, lease protocol.Token, at int64) Line {
		return Line{At: at, Kind: kindBegin, Log: log, PID: 1, Actor: "press", Slot: 1, Process: process, Lease: lease}
	}
	call := func(log string, at int64, n int, l Line) Line {
		l.At, l.Kind, l.Log, l.Call = at, kindCall, log, n
		return l
	}
	answer := func(log string, at int64, n int, l Line) Line {
		l.At, l.Kind, l.Log, l.Call = at, kindAnswer, log, n
		return l
	}
	send := Line{Method: "send", To: "press", Nonce: "1/a", Key: "k"}
	complete := Line{Method: "complete", Message: "m1", Token: 9, Result: "m1 under 9"}
	return Evidence{
		Lines: []Line{
			call("op", 1, 1, send), answer("op", 3, 1, Line{ID: "m1"}),
			call("op", 4, 2, send), answer("op", 5, 2, Line{ID: "m1", Duplicate: true}),
			begin("p1", "p1", 1, 2), call("p1", 6, 1, Line{Method: "claim"}), answer("p1", 8, 1, Line{Claimed: grant(2, 1)}),
			begin("p2", "p2", 4, 10), call("p2", 11, 1, Line{Method: "claim"}), answer("p2", 12, 1, Line{Claimed: grant(5, 2)}),
			call("p2", 13, 2, Line{Method: "send", Message: "m1", Token: 5, To: "bind", Nonce: "0/a.2s0"}), answer("p2", 14, 2, Line{ID: "m2"}),
			call("p2", 15, 3, Line{Method: "fail", Message: "m1", Token: 5}), answer("p2", 17, 3, Line{State: "NEW"}),
			call("p2", 18, 4, Line{Method: "complete", Message: "m1", Token: 5}), answer("p2", 19, 4, Line{Category: refusal.AlreadySettled}),
			begin("p3", "p3", 8, 20), call("p3", 21, 1, Line{Method: "claim"}), answer("p3", 22, 1, Line{Claimed: grant(9, 3)}),
			call("p3", 23, 2, Line{Method: "send", Message: "m1", Token: 9, To: "bind", Nonce: "0/a.3s0"}), answer("p3", 24, 2, Line{ID: "m3"}),
			call("p3", 25, 3, Line{Method: "renew", Message: "m1", Token: 9}), answer("p3", 26, 3, Line{}),
			call("p3", 27, 4, complete), answer("p3", 29, 4, Line{State: "DONE"}),
			call("p3", 30, 5, complete), answer("p3", 31, 5, Line{State: "DONE"}),
			call("p3", 32, 6, Line{Method: "release", Message: "m1"}), answer("p3", 33, 6, Line{Category: refusal.FencingTokenStale}),
			call("op", 40, 3, Line{Method: "cancel", Message: "m3", Nonce: "0/a.3s0"}), answer("op", 41, 3, Line{State: "DEAD"}),
		},
		Messages: []protocol.MessageDetail{m1, m3},
		Stopped:  []protocol.Message{m1.Message, m3.Message},
		Events: []protocol.Event{{Seq: 1, Kind: "failed", Message: "m1", Attempt: 1}, {Seq: 2, Kind: "failed", Message: "m1", Attempt: 2},
			{Seq: 4, Kind: "completed", Message: "m1", Attempt: 3}, {Seq: 5, Kind: "cancelled", Message: "m3"}},
		Verified: protocol.Verified{Messages: 2, Problems: []protocol.Problem{}},
	}
}

func TestJudge_SoundHistory(t *testing.T) {
	for _, v := range judge(order(sound())) {
		t.Errorf("%s: %s", v.Rule, v.Text)
	}
}

// Each rule can fail: one thing in a sound history is made wrong, and the rule that
// is about it says so. Make a rule return nothing and its cases here fail.
func TestJudge_TamperedHistory(t *testing.T) {
	line := func(e *Evidence, log, kind string, n int) *Line {
		i := slices.IndexFunc(e.Lines, func(l Line) bool { return l.Log == log && l.Kind == kind && (l.Call == n) })
		return &e.Lines[i]
	}
	for _, c := range []struct {
		name, rule string
		tamper     func(e *Evidence)
	}{
		{"damage", "store", func(e *Evidence) { e.Verified.Problems = []protocol.Problem{{What: "x", Where: "y"}} }},
		{"another state once it is stopped", "store", func(e *Evidence) { e.Stopped[1].State = "NEW" }},
		{"one less once it is stopped", "store", func(e *Evidence) { e.Stopped = e.Stopped[1:] }},
		{"panic", "store", func(e *Evidence) { e.Log = "all is well\npanic: it is not\n" }},
		{"acknowledged message lost", "lost", func(e *Evidence) { e.Messages = e.Messages[1:] }},
		{"content changed", "lost", func(e *Evidence) { e.Messages[0].Body = new("other") }},
		{"nobody sent it", "origin", func(e *Evidence) { e.Messages[1].Subject = "0/other" }},
		{"sent once, there twice", "origin", func(e *Evidence) {
			twin := e.Messages[1]
			twin.ID = "m4"
			e.Messages = append(e.Messages, twin)
		}},
		{"two completions", "outcome", func(e *Evidence) { e.Messages[0].Receipts[0].Status = "completed" }},
		{"no end", "outcome", func(e *Evidence) { e.Messages[1].State = "NEW" }},
		{"done, and started again", "outcome", func(e *Evidence) { e.Messages[0].Attempt = 4 }},
		{"done without completion", "outcome", func(e *Evidence) { e.Messages[1].State = "DONE" }},
		{"completed and dead", "outcome", func(e *Evidence) { e.Messages[0].State = "DEAD" }},
		{"result of another attempt", "outcome", func(e *Evidence) { e.Messages[0].Result = new("m1 under 5") }},
		{"a start without receipt", "receipts", func(e *Evidence) { e.Messages[0].Receipts = e.Messages[0].Receipts[1:] }},
		{"a receipt of another process", "receipts", func(e *Evidence) { e.Messages[0].Receipts[1].Process = "p9" }},
		{"charged too little", "receipts", func(e *Evidence) { e.Messages[0].Attempts = 2 }},
		{"given to another actor", "receipts", func(e *Evidence) { e.Messages[0].To = "bind" }},
		{"an end that the journal does not know", "journal", func(e *Evidence) { e.Events = e.Events[1:] }},
		{"an end twice in the journal", "journal", func(e *Evidence) { e.Events[1] = e.Events[0] }},
		{"the journal out of order", "journal", func(e *Evidence) { e.Events[1].Seq = 9 }},
		{"tokens of a message fall", "tokens", func(e *Evidence) { e.Messages[0].Receipts[2].Token = 3 }},
		{"tokens of a slot fall", "tokens", func(e *Evidence) { line(e, "p3", kindBegin, 0).Lease = 3 }},
		{"a token given twice", "tokens", func(e *Evidence) { e.Messages[0].Receipts[2].Token = 8 }},
		{"accepted without receipt", "settles", func(e *Evidence) { *line(e, "p2", kindAnswer, 4) = Line{At: 19, Kind: kindAnswer, Log: "p2", Call: 4} }},
		{"accepted, and another's receipt", "settles", func(e *Evidence) { e.Messages[0].Receipts[2].Process = "p2" }},
		{"refused, and counts", "settles", func(e *Evidence) { line(e, "p2", kindAnswer, 3).Category = refusal.FencingTokenStale }},
		{"accepted under a superseded token", "superseded", func(e *Evidence) {
			line(e, "p2", kindCall, 4).At, line(e, "p2", kindAnswer, 4).At = 34, 35
			line(e, "p2", kindAnswer, 4).Category = ""
		}},
		{"staged under a superseded token", "superseded", func(e *Evidence) { line(e, "p2", kindCall, 2).At, line(e, "p2", kindAnswer, 2).At = 34, 35 }},
		{"visible without completion", "staged", func(e *Evidence) {
			e.Messages = append(e.Messages, protocol.MessageDetail{Message: protocol.Message{ID: "m2", To: "bind", Subject: "0/a.2s0", State: "DEAD"}})
		}},
		{"completed, and not visible", "staged", func(e *Evidence) { e.Messages = e.Messages[:1] }},
		{"carried, and not visible", "staged", func(e *Evidence) { line(e, "p3", kindCall, 4).Sends = []string{"0/a.3c0"} }},
		{"one key, two messages", "keys", func(e *Evidence) { line(e, "op", kindAnswer, 2).ID = "m3" }},
		{"one key, two contents", "keys", func(e *Evidence) { line(e, "op", kindCall, 2).Nonce = "1/b" }},
		{"two lives hold one slot", "lives", func(e *Evidence) { e.Lines = append(e.Lines, Line{Kind: kindOverlap}) }},
		{"an old life goes on", "lives", func(e *Evidence) { line(e, "p2", kindAnswer, 4).At = 21 }},
		{"a survivor", "lives", func(e *Evidence) { e.Lines = append(e.Lines, Line{Kind: kindSurvivor}) }},
		{"refused for damage", "categories", func(e *Evidence) { line(e, "p3", kindAnswer, 3).Category = refusal.StoreCorrupt }},
		{"missing, and nobody dropped it", "categories", func(e *Evidence) { line(e, "p2", kindAnswer, 4).Category = refusal.MessageMissing }},
		// The following are in order for every rule but the model.
		{"refused as stale while current", "history", func(e *Evidence) { line(e, "p3", kindAnswer, 3).Category = refusal.FencingTokenStale }},
		{"renewed before it was claimed", "history", func(e *Evidence) { line(e, "p3", kindCall, 3).At, line(e, "p3", kindAnswer, 3).At = 20, 20 }},
		{"renewed after it was done", "history", func(e *Evidence) { line(e, "p3", kindCall, 5).At, line(e, "p3", kindAnswer, 5).At = 23, 24 }},
		{"settled already, before it was", "history", func(e *Evidence) { line(e, "p2", kindCall, 4).At, line(e, "p2", kindAnswer, 4).At = 13, 14 }},
		{"granted while another holds it", "history", func(e *Evidence) { line(e, "p3", kindCall, 1).At, line(e, "p3", kindAnswer, 1).At = 13, 14 }},
		{"retried while it was claimed", "history", func(e *Evidence) {
			e.Lines = append(e.Lines, Line{At: 24, Kind: kindCall, Log: "op", Call: 9, Method: methodRetry, Message: "m1"}, Line{At: 25, Kind: kindAnswer, Log: "op", Call: 9})
		}},
		{"cancelled after it was done", "history", func(e *Evidence) {
			e.Lines = append(e.Lines, Line{At: 34, Kind: kindCall, Log: "op", Call: 9, Method: methodCancel, Message: "m1"}, Line{At: 35, Kind: kindAnswer, Log: "op", Call: 9})
		}},
		{"given out after it was cancelled", "history", func(e *Evidence) {
			e.Lines = append(e.Lines, Line{At: 18, Kind: kindCall, Log: "op", Call: 9, Method: methodCancel, Message: "m1"}, Line{At: 19, Kind: kindAnswer, Log: "op", Call: 9})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := sound()
			c.tamper(&e)
			found := judge(order(e))
			if !slices.ContainsFunc(found, func(v Violation) bool { return v.Rule == c.rule }) {
				t.Errorf("the rule %q sees nothing; found: %v", c.rule, found)
			}
		})
	}
}

// What may or may not have been done is no violation either way: the answer to the
// completion was lost, and the answers to the cancelling and to a retry.
func TestJudge_LostAnswers(t *testing.T) {
	e := sound()
	lose := func(log string, n int) {
		e.Lines = slices.DeleteFunc(e.Lines, func(l Line) bool { return l.Log == log && l.Kind == kindAnswer && l.Call == n })
	}
	lose("p3", 4)
	lose("p2", 3)
	lose("op", 3)
	lose("p1", 1)
	e.Lines = append(e.Lines, Line{At: 18, Kind: kindCall, Log: "op", Call: 9, Method: methodRetry, Message: "m1"})
	for _, v := range judge(order(e)) {
		t.Errorf("%s: %s", v.Rule, v.Text)
	}
}

// What a shell has printed is an answer, too.
func TestLine_Printed(t *testing.T) {
	for _, c := range []struct {
		raw      string
		id       string
		category refusal.Category
	}{
		{`{"id":"m7","duplicate":true}`, "m7", ""},
		{`{"error":{"category":"duplicate_key","why":"w"}}`, "", refusal.DuplicateKey},
		{`{"error":{"category":"unavailable"}}`, "", unknown},
		{`null`, "", unknown},
	} {
		l := Line{Raw: json.RawMessage(c.raw)}
		l.printed()
		if l.ID != c.id || l.Category != c.category {
			t.Errorf("%s: id %q, category %q", c.raw, l.ID, l.Category)
		}
	}
}
