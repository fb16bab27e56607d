package mailbox_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/mailbox/mailboxtest"
	"github.com/sovereign-run/sovereign/refusal"
)

// Report 4.9 #80 and its kind: a key that outlives its message (key ttl) is held for its
// time, and then goes by itself. Sends with a key of their own each would otherwise leave
// a record for ever, with nothing that ever removes it. Remove the entry that freeKeyTx
// makes and this fails.
func TestRun_RemovesKeysThatOutliveTheirMessage(t *testing.T) {
	dir := mailboxtest.Dir(t)
	synctest.Test(t, func(t *testing.T) {
		actor := mailboxtest.Actor("work")
		actor.Retention.Done = time.Hour
		box := bubble(t, dir, actor)
		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- box.Run(ctx) }()
		h := begin(t, box, 1)
		send := func(key string, ttl time.Duration) mailbox.Sent {
			t.Helper()
			s, err := box.Send(t.Context(), mailbox.Outgoing{To: "work", Key: key, KeyTTL: ttl})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		keys := func(when string, want int) {
			t.Helper()
			synctest.Wait()
			if n, err := box.Keys(t.Context()); err != nil || n != want {
				t.Errorf("%s: %d keys on record, want %d, %v", when, n, want, err)
			}
		}
		var first mailbox.Sent
		for i := range 20 {
			s := send("key "+strconv.Itoa(i), 3*time.Hour)
			if i == 0 {
				first = s
			}
			got, err := box.Claim(t.Context(), h, mailbox.ClaimRequest{})
			if err != nil || len(got) != 1 {
				t.Fatal(got, err)
			}
			if _, err := box.Settle(t.Context(), h, mailboxtest.RefOf(got[0]), mailboxtest.Completed(""), nil); err != nil {
				t.Fatal(err)
			}
		}
		send("dropped", 2*time.Hour)
		keys("at first", 21)
		if n, err := box.Purge(t.Context(), mailbox.New, 0); err != nil || n != 1 {
			t.Fatal(n, err)
		}
		time.Sleep(2*time.Hour - time.Second)
		keys("after the messages have gone", 21)
		if s := send("key 0", 3*time.Hour); !s.Duplicate || s.ID != first.ID {
			t.Errorf("a key that is held for a time of its own: %+v, want the duplicate of %s", s, first.ID)
		}
		time.Sleep(time.Second)
		keys("after the time of the one that was dropped", 20)
		time.Sleep(time.Hour)
		keys("after all times", 0)
		// One that was taken over at the end of its time is the later message's.
		a := send("again", time.Minute)
		if err := box.Drop(t.Context(), a.ID); err != nil {
			t.Fatal(err)
		}
		cancel()
		<-ran
		time.Sleep(time.Minute)
		if s := send("again", time.Hour); s.Duplicate {
			t.Errorf("a key whose time is over is still held: %+v", s)
		}
		ctx, cancel = context.WithCancel(t.Context())
		go func() { ran <- box.Run(ctx) }()
		keys("of a later message", 1)
		cancel()
		<-ran
	})
}

// Report 4.9 #80: while a key is held by a send that is staged nobody else can tell what
// becomes of it, whatever the content: who sends is told to come again, not to look at a
// message that is visible to nobody. Judge the content first and this fails.
func TestSend_WithTheKeyOfAStagedOne(t *testing.T) {
	h, a, _ := house(t)
	d := h.MustClaim(t, a, h.MustSend(t, "work", ""))
	keyed := mailbox.Outgoing{To: "work", Key: "k", Body: []byte("staged")}
	held, err := h.Box.Stage(t.Context(), a, mailboxtest.RefOf(d), keyed)
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{"staged", "other"} {
		_, err := h.Box.Send(t.Context(), mailbox.Outgoing{To: "work", Key: "k", Body: []byte(body), From: a.Slot.Actor})
		if !refusal.Has(err, refusal.DuplicateKey) || !refusal.Of(err).Retryable || strings.Contains(err.Error()+refusal.Of(err).Next, held.ID.String()) {
			t.Errorf("%s: %v", body, err)
		}
	}
	h.MustSettle(t, a, mailboxtest.RefOf(d), mailboxtest.Failed("no"))
	if s, err := h.Box.Send(t.Context(), mailbox.Outgoing{To: "work", Key: "k", Body: []byte("other")}); err != nil || s.Duplicate {
		t.Errorf("once it is gone: %+v, %v", s, err)
	}
}

// A key whose time was over may be another message's by the time its first holder is
// dropped: it stays that one's. Leave the comparison of the ids out of freeKeyTx and this
// fails.
func TestDrop_LeavesTheKeyToItsNextHolder(t *testing.T) {
	h := mailboxtest.Open(t, mailboxtest.Actor("work"))
	send := func(ttl time.Duration) mailbox.Sent {
		t.Helper()
		sent, err := h.Box.Send(t.Context(), mailbox.Outgoing{To: "work", Key: "k", KeyTTL: ttl})
		if err != nil {
			t.Fatal(err)
		}
		return sent
	}
	first := send(time.Minute)
	h.Advance(time.Minute)
	second := send(0)
	if second.Duplicate {
		t.Fatal("the key was held beyond its time")
	}
	if err := h.Box.Drop(t.Context(), first.ID); err != nil {
		t.Fatal(err)
	}
	if again := send(0); !again.Duplicate || again.ID != second.ID {
		t.Fatalf("%+v, the key is that of %s", again, second.ID)
	}
}
