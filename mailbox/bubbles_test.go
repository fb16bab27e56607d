package mailbox_test

import (
	"context"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/mailbox/mailboxtest"
	"github.com/sovereign-run/sovereign/recovery"
	"github.com/sovereign-run/sovereign/store/bolt"
)

// bubble is a mailbox in a synctest bubble, whose clocks are the bubble's.
func bubble(t *testing.T, dir string, actors ...mailbox.Actor) *mailbox.Box {
	t.Helper()
	db, err := bolt.Open(dir, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	leases := fence.New(db, func() fence.Instant { return fence.Instant(time.Hour + time.Since(start)) })
	box, err := mailbox.Open(t.Context(), db, leases, mailbox.Options{Random: func() float64 { return 0.5 }})
	if err != nil {
		t.Fatal(err)
	}
	if err := box.SetActors(t.Context(), actors); err != nil {
		t.Fatal(err)
	}
	if err := box.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := box.Verify(context.Background(), func(p mailbox.Problem) { t.Errorf("verify: %+v", p) }); err != nil {
			t.Error(err)
		}
		_ = box.Close()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return box
}

func begin(t *testing.T, box *mailbox.Box, slot int) fence.Holder {
	t.Helper()
	l, err := box.Begin(t.Context(), fence.Slot{Actor: "work", Number: slot}, fence.NewProcess(), time.Minute, mailbox.Event{Kind: "started"})
	if err != nil {
		t.Fatal(err)
	}
	return l.Holder()
}

func sendTo(t *testing.T, box *mailbox.Box, m mailbox.Outgoing) mailbox.ID {
	t.Helper()
	m.To = "work"
	s, err := box.Send(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	return s.ID
}

// recoverIn recovers box, whose store is in dir, and goes on as a supervisor does until the
// test ends.
func recoverIn(t *testing.T, box *mailbox.Box, dir string) {
	t.Helper()
	r := recovery.New(box, recovery.NewWorkspaces(dir), nil)
	if _, err := r.Reconcile(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	go func() { _ = r.Run(t.Context()) }()
}

// claimNext claims the next message for a, which there must be.
func claimNext(t *testing.T, box *mailbox.Box, a fence.Holder) mailbox.Ref {
	t.Helper()
	got, err := box.Claim(t.Context(), a, mailbox.ClaimRequest{})
	if err != nil || len(got) != 1 {
		t.Fatal(got, err)
	}
	return mailboxtest.RefOf(got[0])
}
