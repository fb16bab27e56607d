package mailbox_test

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/mailbox/mailboxtest"
	"github.com/sovereign-run/sovereign/store/bolt"
)

// A supervisor that hands its place over closes the store before what looks for due
// messages ends: that one of them is due in between is nobody's fault, and no error in
// its log. Log every error of a look and this fails.
func TestRun_SaysNothingOfAStoreThatIsClosed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		db, err := bolt.Open(dir, bolt.Options{})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		leases := fence.New(db, func() fence.Instant { return fence.Instant(time.Hour + time.Since(start)) })
		var log bytes.Buffer
		box, err := mailbox.Open(t.Context(), db, leases, mailbox.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		if err := box.SetActors(t.Context(), []mailbox.Actor{mailboxtest.Actor("work")}); err != nil {
			t.Fatal(err)
		}
		if err := box.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		sendTo(t, box, mailbox.Outgoing{TTL: time.Minute})
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() { _ = box.Run(ctx); close(over) }()
		synctest.Wait() // for its first looks
		if err := box.Close(); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		<-time.After(2 * time.Minute) // of the bubble's: the message's time is over
		synctest.Wait()
		cancel()
		<-over
		if log.Len() > 0 {
			t.Errorf("logged: %s", log.String())
		}
	})
}
