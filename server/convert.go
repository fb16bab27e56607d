package server

import (
	"encoding/base64"
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
)

// This file turns what the mailbox knows into what goes over the wire. An
// identity is shortened here (P10), and nowhere may one pass by.

// quoted is s for a refusal: as much of it as tells which one was meant.
func quoted(s string) string {
	const most = 60 // bytes
	return protocol.Quote(s, most)
}

func outgoing(o protocol.Outgoing) mailbox.Outgoing {
	return mailbox.Outgoing{To: o.To, Subject: o.Subject, Headers: o.Headers, Body: o.Body, Key: o.Key,
		KeyTTL: o.KeyTTL.Std(), Delay: o.Delay.Std(), At: o.At, Priority: o.Priority, Group: o.Group, TTL: o.TTL.Std()}
}

func outgoings(list []protocol.Outgoing) []mailbox.Outgoing {
	if len(list) == 0 {
		return nil
	}
	out := make([]mailbox.Outgoing, len(list))
	for i := range list {
		out[i] = outgoing(list[i])
	}
	return out
}

func delivery(d mailbox.Delivery) protocol.Delivery {
	return protocol.Delivery{ID: d.ID.String(), From: d.From, Subject: d.Subject, Headers: headers(d.Headers), Body: d.Body,
		Attempt: d.Attempt, Token: protocol.Token(d.Token), ExpiresAt: d.ExpiresAt.UTC(), RemainingMS: d.Remaining.Milliseconds()}
}

func deliveries(list []mailbox.Delivery) []protocol.Delivery {
	out := make([]protocol.Delivery, len(list))
	for i := range list {
		out[i] = delivery(list[i])
	}
	return out
}

func headers(h map[string]string) map[string]string {
	if h == nil {
		return none
	}
	return h
}

var none = map[string]string{} // nobody adds to it; nil would be null on the wire

// lineSizes appends to into how many bytes each delivery has on a line, as far as whether
// all go into one depends on it: where that is beyond doubt, about as many as it
// has in memory.
func lineSizes(into []int, list []mailbox.Delivery) []int {
	const rest = 64 << 10 // of a delivery besides body and subject, as JSON
	sizes, worst := append(into, make([]int, len(list))...), 0
	for i := range list {
		sizes[i] = len(list[i].Body) + 1024
		worst += 6*(len(list[i].Body)+len(list[i].Subject)+len(list[i].From)) + rest
	}
	if worst <= lineRoom {
		return sizes
	}
	for i := range list {
		if line, err := json.Marshal(delivery(list[i])); err == nil {
			sizes[i] = len(line) + 1
		}
	}
	return sizes
}

// sizeAtMost bounds what a delivery takes of a line, without writing it.
func sizeAtMost(d mailbox.Delivery) int {
	const rest = 1024 // numbers, times, names
	n := rest + quotedSize(string(d.From)) + quotedSize(d.Subject) + bodySize(d.Body)
	for k, v := range d.Headers {
		n += quotedSize(k) + quotedSize(v) + 2
	}
	return n
}

// listedAtMost bounds what a message takes of a line with a list.
func listedAtMost(m mailbox.Message) int {
	const rest = 1024 // numbers, times, names
	n := rest + quotedSize(m.From) + quotedSize(m.Subject) + quotedSize(m.Group) + quotedSize(m.Key)
	for k, v := range m.Headers {
		n += quotedSize(k) + quotedSize(v) + 2
	}
	if m.Claim != nil {
		n += quotedSize(m.Claim.Progress)
	}
	if m.LastFailure != nil {
		n += quotedSize(m.LastFailure.Reason)
	}
	return n
}

// bodySize is quotedSize, or the size of base64 where the body is no UTF-8.
func bodySize(body []byte) int {
	if !utf8.Valid(body) {
		return base64.StdEncoding.EncodedLen(len(body)) + 16
	}
	return quotedSize(body)
}

// quotedSize bounds the size of a JSON string.
func quotedSize[T string | []byte](s T) int {
	n := len(s) + 3
	for i := range len(s) {
		switch c := s[i]; {
		case c < 0x20, c == 0x7f, c == '<', c == '>', c == '&':
			n += 5
		case c == '"', c == '\\':
			n++
		case c == 0xe2: // U+2028 and U+2029 are three bytes, and become six
			n += 3
		}
	}
	return n
}

// lineRoom is what the messages of one answer may take of its line.
const lineRoom = protocol.MaxLine - 4096

// whatFits is how many of the sizes, from the first, go into one line. A single
// one always does: the bounds of a message see to that.
func whatFits(sizes []int) int {
	sum := 0
	for i, n := range sizes {
		if sum += n; i > 0 && sum > lineRoom {
			return i
		}
	}
	return len(sizes)
}

func message(m mailbox.Message) protocol.Message {
	out := protocol.Message{ID: m.ID.String(), To: m.To, From: m.From, Subject: m.Subject, Headers: headers(m.Headers),
		State: protocol.MessageState(m.State.String()), Priority: m.Priority, Group: m.Group, Key: m.Key, Attempt: m.Attempt, Attempts: m.Attempts,
		MaxAttempts: m.MaxAttempts, Size: m.Size, CreatedAt: m.CreatedAt.UTC(), AvailableAt: utc(m.AvailableAt), ExpiresAt: utc(m.LapsesAt), EndedAt: utc(m.EndedAt)}
	if c := m.Claim; c != nil {
		out.Claim = &protocol.Claim{Process: c.Holder.Process.Short(), Slot: c.Holder.Slot.Number, Token: protocol.Token(c.Token),
			LeaseToken: protocol.Token(c.Holder.Token), ExpiresAt: c.ExpiresAt.UTC(), RemainingMS: c.Remaining.Milliseconds(), Progress: c.Progress}
	}
	if f := m.LastFailure; f != nil {
		out.LastFailure = &protocol.LastFailure{Category: string(f.Category), Reason: f.Reason, At: f.At.UTC()}
	}
	return out
}

// utc leaves the zero time zero.
func utc(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC()
}

func detail(d mailbox.Detail) protocol.MessageDetail {
	out := protocol.MessageDetail{Message: message(d.Message), ResultTruncated: d.ResultTruncated, Why: d.Why,
		Receipts: make([]protocol.Receipt, len(d.Receipts)), Omitted: d.Omitted, TTL: protocol.Duration(d.TTL)}
	out.Poison = d.Poison
	out.KeyExpiresAt, out.KeyFree = utc(d.KeyUntil), d.KeyFree
	if d.BlockedBy != 0 {
		out.BlockedBy = d.BlockedBy.String()
	}
	out.Body, out.BodyBase64 = text(d.Body)
	if d.State == mailbox.Done {
		out.Result, out.ResultBase64 = text(d.Result)
	}
	for i, r := range d.Receipts {
		out.Receipts[i] = receipt(r)
	}
	return out
}

// text returns b as a string where it goes over the wire as one, else as it is.
func text(b []byte) (*string, []byte) {
	if !protocol.IsText(b) {
		return nil, b
	}
	s := string(b)
	return &s, nil
}

func receipt(r mailbox.Receipt) protocol.Receipt {
	out := protocol.Receipt{Attempt: r.Attempt, Token: protocol.Token(r.Token), LeaseToken: protocol.Token(r.LeaseToken),
		Process: r.Process.Short(), Actor: r.Slot.Actor, Slot: r.Slot.Number, StartedAt: utc(r.StartedAt), EndedAt: utc(r.EndedAt),
		Status: string(r.Status), Category: string(r.Category), Counted: r.Counted, ByWorker: r.ByWorker, Reason: r.Reason, Signal: r.Signal}
	if r.ExitCode >= 0 {
		out.ExitCode = &r.ExitCode
	}
	return out
}

func event(e mailbox.Event) protocol.Event {
	out := protocol.Event{Seq: e.Seq, At: utc(e.At), Kind: e.Kind, Actor: e.Actor, Slot: e.Slot, Process: e.Process.Short(),
		Attempt: e.Attempt, Token: protocol.Token(e.Token), Category: e.Category, Text: e.Text}
	if e.Message != 0 {
		out.Message = e.Message.String()
	}
	return out
}

func counts(c mailbox.Counts) protocol.Counts {
	return protocol.Counts{New: c.New, Claimed: c.Claimed, Done: c.Done, Dead: c.Dead, Parked: c.Parked}
}

func lease(r fence.Record) protocol.Lease {
	out := protocol.Lease{Actor: r.Slot.Actor, Slot: r.Slot.Number, Error: protocol.ErrorOf(r.Err)}
	if r.Err == nil {
		out.Process, out.Token = r.Lease.Process.Short(), protocol.Token(r.Lease.Token)
		out.RemainingMS, out.Expired = r.Remaining.Milliseconds(), r.Remaining <= 0
	}
	return out
}
