package mailbox_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/mailbox/mailboxtest"
	"github.com/sovereign-run/sovereign/store"
)

// noMarks is a store that fails once where marks are looked at.
type noMarks struct {
	store.Store
	armed bool
	seen  int // reads of marks
}

func (s *noMarks) View(ctx context.Context, fn func(store.Reader) error) error {
	looks := false
	err := s.Store.View(ctx, func(r store.Reader) error { return fn(&noMarksReader{r, &looks}) })
	if looks {
		s.seen++
		if s.armed {
			s.armed = false
			return errors.New("injected")
		}
	}
	return err
}

type noMarksReader struct {
	store.Reader
	looks *bool
}

func (r *noMarksReader) Scan(from, to []byte, fn func(key, value []byte) bool) {
	if from[0] == mailbox.SpaceBlock {
		*r.looks = true
	}
	r.Reader.Scan(from, to, fn)
}

// Marks that stand for nothing do not become more and more: a run looks at all of
// them a second after it began, and again after so many messages have ended, staged sends that were
// removed among them, once more where a look failed. Leave out begun, count nothing in
// unstage or stagedStepTx, or subtract before unmark in tidyBlocks, and this fails.
func TestRun_RemovesMarks(t *testing.T) {
	dir := mailboxtest.Dir(t)
	synctest.Test(t, func(t *testing.T) {
		const after = 20
		s := &noMarks{}
		h := mailboxtest.New(dir)
		h.Mailbox = mailbox.Options{Wall: time.Now, UnmarkAfter: after, BlockBits: 1}
		h.Wrap = func(st store.Store) store.Store { s.Store = st; return s }
		h.MustOpen(t)
		actor := mailboxtest.Actor("work")
		actor.Limit, actor.Retry.MaxAttempts = 0, 100
		if err := h.Box.SetActors(t.Context(), []mailbox.Actor{actor}); err != nil {
			t.Fatal(err)
		}
		a := h.MustBegin(t, "work", 1)
		end := func(n int) {
			t.Helper()
			for range n {
				if _, err := h.Box.Cancel(t.Context(), h.MustSend(t, "work", "")); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
		}
		left := func(when string, want int) {
			t.Helper()
			if got := len(marks(t, h, false)) - 1; got > want+2 || got < want {
				t.Errorf("%s: %d marks, want %d", when, got, want)
			}
		}
		end(after - 1)
		left("without Run", after/2)
		h.Reopen(t)
		ctx, stop := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- h.Box.Run(ctx) }()
		synctest.Wait()
		left("at the start", after/2)
		time.Sleep(time.Second) // in the bubble
		synctest.Wait()
		left("a second after it", 0)
		end(after - 1)
		left("after few", after/2)
		end(1)
		left("after enough", 0)

		held := h.MustClaim(t, a, h.MustSend(t, "work", ""))
		for range after {
			if _, err := h.Box.Stage(t.Context(), a, mailboxtest.RefOf(held), mailbox.Outgoing{To: "work"}); err != nil {
				t.Fatal(err)
			}
		}
		h.MustSettle(t, a, mailboxtest.RefOf(held), mailboxtest.Failed("no"))
		synctest.Wait()
		left("after staged sends were removed", 0)

		s.armed = true
		end(after)
		if s.armed {
			t.Error("nobody looked")
		}
		left("after a look that failed", after/2)
		time.Sleep(time.Minute) // in the bubble
		synctest.Wait()
		left("a pause later", 0)
		seen := s.seen
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if s.seen != seen {
			t.Errorf("%d looks while nothing ended", s.seen-seen)
		}
		stop()
		<-ran
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
}
