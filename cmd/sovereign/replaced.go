package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/store/bolt"
)

// A replacedStore is the store that a restore has replaced, as programs read it.
type replacedStore struct {
	Kept     string          `json:"kept"` // the file that it is in now
	Messages protocol.Counts `json:"messages"`
	// Newer are those that were sent after the backup was made. It is nil where the backup
	// is of another store: nothing says then which of them are in both.
	Newer      *protocol.Counts `json:"newer"`
	LastEvent  *time.Time       `json:"last_event,omitempty"`
	Unreadable string           `json:"unreadable,omitempty"` // why nothing is known of it
}

// replacedBy looks at the store old, of which a backup knows the messages up to since,
// if it is none of another store; err is why it cannot be read.
func replacedBy(ctx context.Context, old *bolt.DB, since uint64, other bool, err error) *replacedStore {
	out := &replacedStore{}
	if err == nil {
		err = out.read(ctx, old, mailbox.ID(since), other)
	}
	if err != nil {
		out.Unreadable = err.Error()
	}
	return out
}

func (r *replacedStore) read(ctx context.Context, old *bolt.DB, since mailbox.ID, other bool) (err error) {
	box, err := mailbox.Open(ctx, old, leasesOf(old), mailbox.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, box.Close()) }()
	if r.Messages, err = allCounts(ctx, box); err != nil {
		return err
	}
	if !other {
		newer, err := box.Newer(ctx, since)
		if err != nil {
			return err
		}
		r.Newer = &protocol.Counts{}
		addCounts(r.Newer, newer)
	}
	last, err := box.LastEvents(ctx, 1)
	if err == nil && len(last) > 0 {
		r.LastEvent = &last[0].At
	}
	return err
}

func (r *replacedStore) print(w io.Writer) error {
	var b strings.Builder
	if r.Unreadable != "" {
		fmt.Fprintf(&b, "replaced a store that cannot be read: %s\n", printable(r.Unreadable))
	} else {
		fmt.Fprintf(&b, "replaced a store of %s", counted(r.Messages))
		if r.LastEvent != nil {
			fmt.Fprintf(&b, ", last event %s", r.LastEvent.Format(time.RFC3339))
		}
		if r.Newer != nil {
			fmt.Fprintf(&b, "\nsent after the backup, and not in it: %s\n", counted(*r.Newer))
		} else {
			b.WriteString("\nthe backup is of another store: which of these messages are in it too is not known\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// allCounts counts the messages of a store.
func allCounts(ctx context.Context, box *mailbox.Box) (sum protocol.Counts, err error) {
	all, err := box.AllCounts(ctx)
	for _, c := range all {
		addCounts(&sum, c)
	}
	return sum, err
}

func addCounts(sum *protocol.Counts, c mailbox.Counts) {
	sum.New += c.New
	sum.Claimed += c.Claimed
	sum.Done += c.Done
	sum.Dead += c.Dead
	sum.Parked += c.Parked
}

// counted is "3 messages (2 NEW, 1 DONE)".
func counted(c protocol.Counts) string {
	var parts []string
	total := int64(0)
	for _, one := range []struct {
		n     int64
		state mailbox.State
	}{{c.New, mailbox.New}, {c.Claimed, mailbox.Claimed}, {c.Done, mailbox.Done}, {c.Dead, mailbox.Dead}, {c.Parked, mailbox.Parked}} {
		if one.n != 0 {
			parts = append(parts, fmt.Sprintf("%d %s", one.n, one.state))
		}
		total += one.n
	}
	text := plural(total, "message")
	if len(parts) > 0 {
		text += " (" + strings.Join(parts, ", ") + ")"
	}
	return text
}
