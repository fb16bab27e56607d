package mailbox_test

import (
	"context"
	"testing"

	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/mailbox/mailboxtest"
)

// A claim whose caller has gone reads no further blocks of a long inbox. Leave out the
// look at ctx in ready and this fails.
func TestClaim_ReadsNoMoreBlocksForWhoHasGone(t *testing.T) {
	h := mailboxtest.Open(t, mailboxtest.Actor("work"), mailboxtest.Actor("other"))
	for range 40 {
		h.MustSend(t, "work", "")
	}
	h.Reopen(t)
	a := h.MustBegin(t, "work", 1)
	unread := h.Box.Unread()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := h.Box.Claim(gone, a, mailbox.ClaimRequest{}); err != context.Canceled || len(got) > 0 {
		t.Errorf("%v, %v", got, err)
	}
	if left := h.Box.Unread(); left != unread || unread < 10 {
		t.Errorf("%d blocks of %d are unread", left, unread)
	}
}
