package mailbox

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sovereign-run/sovereign/store"
)

// The receipts that are shown of one message: the last ones, so many at most and of so
// many bytes on record. A message that is deferred, or given back, again and again has
// any number of them, and would fit into no line otherwise.
const (
	shownReceipts = 1000
	shownBytes    = 512 << 10
)

// Show returns all that is known of a message, and why it is not running; of very many
// receipts the last. It changes nothing. message_missing where there is none.
func (b *Box) Show(ctx context.Context, id ID) (d Detail, err error) {
	err = b.store.View(ctx, func(r store.Reader) (err error) {
		d, err = b.showTx(r, id)
		return err
	})
	return d, err
}

// showTx is Show within a transaction.
func (b *Box) showTx(r store.Reader, id ID) (d Detail, err error) {
	rec, err := b.get(r, id)
	if err != nil {
		return d, err
	}
	if rec = b.visible(r, rec); rec == nil || rec.state == staged {
		return d, missing(id)
	}
	c, err := decodeContent(id, r.Get(idKey(spaceContent, id)))
	if err != nil {
		return d, err
	}
	d.Message = b.message(rec, c)
	d.Body, d.TTL = c.body, c.ttl
	if v := r.Get(idKey(spaceResult, id)); v != nil {
		if d.Result, d.ResultTruncated, err = decodeResult(id, v); err != nil {
			return d, err
		}
	}
	d.KeyUntil, d.KeyFree = b.keyOf(r, rec, c.key)
	prefix := idKey(spaceReceipt, id)
	size := 0
	r.ScanBack(prefix, after(prefix), func(k, v []byte) bool {
		_, attempt, ok := parseReceiptKey(k)
		if !ok {
			return true
		}
		if size += len(v); len(d.Receipts) == shownReceipts || size > shownBytes {
			d.Omitted = attempt
			return false
		}
		var rc Receipt
		if rc, err = decodeReceipt(id, attempt, v); err != nil {
			return false
		}
		d.Receipts = append(d.Receipts, rc)
		return true
	})
	if err != nil {
		return d, err
	}
	slices.Reverse(d.Receipts)
	live := true
	var blocks *Message
	if rec.state == Claimed {
		live, _ = b.liveTx(r, rec, b.leases.Now())
	}
	if rec.state == New {
		if by := b.blockedTx(r, rec); by != 0 {
			d.BlockedBy = by
			if first, err := b.get(r, by); err == nil && first != nil {
				m := b.message(first, &content{group: c.group})
				blocks = &m
			}
		}
	}
	d.OnRecord, d.Ready = why(d.Message, b.policy(rec.to), blocks, live, b.wall())
	d.Why = d.OnRecord
	if d.Poison = poison(rec.deaths); d.Poison != "" && d.Why != "" {
		d.Why += "; " + d.Poison
	}
	return d, nil
}

// why says in a sentence why a message is not running now, and whether nothing on
// record holds it back: a pure function of what is on record; blocks is the message of
// its group that comes first, nil none. Running messages and ended ones that need no
// word have "".
func why(m Message, a Actor, blocks *Message, live bool, now time.Time) (text string, ready bool) {
	last := ""
	if m.LastFailure != nil {
		last = fmt.Sprintf(" (last: %s)", m.LastFailure.Category)
	}
	switch m.State {
	case New:
		return whyNew(m, a, blocks, last, now)
	case Claimed:
		if !live {
			return "its claim is no longer live and is about to be recovered", false
		}
	case Dead:
		return "it is DEAD" + last + "; run `sovereign inbox retry " + m.ID.String() + "` to try it again", false
	case Parked:
		return "it is PARKED and waits for a person" + last + "; run `sovereign inbox retry " + m.ID.String() +
			"` or `sovereign inbox drop " + m.ID.String() + "`", false
	}
	return "", false
}

func whyNew(m Message, a Actor, blocks *Message, last string, now time.Time) (text string, ready bool) {
	held := ""
	switch {
	case a.Paused:
		held = "deliveries to " + m.To + " are paused; run `sovereign resume " + m.To + "`"
	case a.Stopped:
		held = m.To + " is stopped; run `sovereign start " + m.To + "`"
	}
	switch {
	case a.Removed:
		return "its actor " + m.To + " is not in the present actors.yaml", false
	case !a.Mailbox:
		return m.To + " is a daemon in the present actors.yaml, and takes no messages", false
	case !m.LapsesAt.IsZero() && !m.LapsesAt.After(now):
		return "its time to live is over and it is about to be DEAD", false
	case blocks != nil:
		text = "its group " + quote(blocks.Group) + " is worked on in send order, and " + ahead(*blocks, now) +
			"; see `sovereign inbox show " + blocks.ID.String() + "`"
	case m.AvailableAt.After(now) && m.Attempt > 0:
		text = "it waits after attempt " + fmt.Sprint(m.Attempt) + " until " + m.AvailableAt.Format(time.RFC3339) + last
	case m.AvailableAt.After(now):
		text = "it is not due before " + m.AvailableAt.Format(time.RFC3339)
	case held == "":
		return "it is ready and waits for a free slot of " + m.To, true
	default:
		return held, false
	}
	if held != "" {
		text += "; " + held
	}
	return text, false
}

// ahead says how the message of a group that comes first stands.
func ahead(first Message, now time.Time) string {
	text := first.ID.String() + " is " + first.State.String()
	switch {
	case first.Claim != nil:
		text += " by " + first.Claim.Holder.Slot.String()
	case first.State == New && first.AvailableAt.After(now):
		text += " and waits until " + first.AvailableAt.Format(time.RFC3339)
	}
	return text
}
