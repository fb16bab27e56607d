package server

import (
	"errors"
	"fmt"
	"time"

	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

// sendBatch sends all or none.
func (c *Control) sendBatch(in asking, p protocol.SendBatchParams) (any, error) {
	if err := in.bulky(); err != nil {
		return nil, err
	}
	list := make([]mailbox.Outgoing, len(p.Messages))
	for i, m := range p.Messages {
		list[i] = outgoing(m.Outgoing)
		list[i].From = m.From
	}
	sent, err := c.box.SendBatch(in.run, list, func(done int) {
		if in.link != nil {
			in.tell(protocol.NotifyProgress, protocol.Progress{Done: done, Total: len(list)})
		}
	})
	if err != nil {
		return nil, inLine(err, func(i int) int { return p.Messages[i].Line })
	}
	out := sendResults(sent)
	obstacles := map[string]string{} // by recipient
	for i, m := range list {
		obstacle, known := obstacles[m.To]
		if !known {
			obstacle = c.obstacle(m.To)
			obstacles[m.To] = obstacle
		}
		out[i].Recipient = obstacle
	}
	return protocol.SendBatchResult{Messages: out}, nil
}

func sendResults(sent []mailbox.Sent) []protocol.SendResult {
	out := make([]protocol.SendResult, len(sent))
	for i, s := range sent {
		out[i] = protocol.SendResult{ID: s.ID.String(), Duplicate: s.Duplicate}
	}
	return out
}

// inLine says in the refusal of one message of several where that one was read.
func inLine(err error, line func(i int) int) error {
	which, ok := errors.AsType[*mailbox.BatchError](err)
	if !ok {
		return err
	}
	said := *refusal.Of(which.Err)
	where := fmt.Sprintf("message %d of the batch", which.Index+1)
	if n := line(which.Index); n > 0 {
		where = fmt.Sprintf("line %d", n)
	}
	said.Message = where + ": " + said.Message
	return said.Because(err)
}

// inboxImport writes what an export holds, up to the first that is refused.
func (c *Control) inboxImport(in asking, p protocol.InboxImportParams) (any, error) {
	if err := in.bulky(); err != nil {
		return nil, err
	}
	line := func(i int) int { return p.Messages[i].Line }
	list := make([]mailbox.Import, 0, len(p.Messages))
	var bad error
	seen := make(map[string]bool, len(p.Messages))
	for i, m := range p.Messages {
		one, err := imported(m, time.Now())
		if err == nil && m.ID != "" && seen[m.ID] {
			err = refusal.New(refusal.BadRequest, "the id "+protocol.Cut(m.ID, 40)+" comes a second time",
				"an export holds each message once", "leave the second one out, or import what another store exported by itself")
		}
		seen[m.ID] = true
		if err != nil {
			bad = &mailbox.BatchError{Index: i, Err: err} // those before it count
			break
		}
		list = append(list, one)
	}
	sent, err := c.box.Import(in.run, list)
	if err == nil {
		err = bad
	}
	out := protocol.InboxImported{Messages: sendResults(sent)}
	which, one := errors.AsType[*mailbox.BatchError](err)
	switch {
	case one:
		out.Line = line(which.Index)
	case err != nil && len(sent) == 0:
		return nil, err // it is not about one of them
	}
	if err != nil {
		out.Error = protocol.ErrorOf(inLine(err, line))
	}
	return out, nil
}

// imported is what an exported message comes in as at now.
func imported(m protocol.ExportedMessage, now time.Time) (mailbox.Import, error) {
	state, err := mailbox.ParseState(string(m.State))
	if err != nil {
		return mailbox.Import{}, err
	}
	out := mailbox.Import{ID: m.ID, State: state, Result: m.Result, ResultTruncated: m.Truncated, Outgoing: mailbox.Outgoing{To: m.To, From: m.From, Subject: m.Subject,
		Headers: m.Headers, Body: m.Body, Key: m.Key, Priority: m.Priority, Group: m.Group}}
	if m.AvailableAt.After(now) {
		out.At = m.AvailableAt
	}
	out.TTL = m.TTL.Std()
	if !m.ExpiresAt.IsZero() {
		out.LapsesAt = m.ExpiresAt
		if out.LapsesAt.Before(now) {
			out.LapsesAt = now // what has lapsed meanwhile lapses at once
		}
		if out.TTL == 0 { // of a version that did not write it
			out.TTL = max(time.Millisecond, m.ExpiresAt.Sub(now))
		}
	}
	switch {
	case m.Key == "":
	case m.KeyFree, !m.KeyExpires.IsZero() && !m.KeyExpires.After(now):
		out.KeyFree = true
	case !m.KeyExpires.IsZero():
		out.KeyTTL = m.KeyExpires.Sub(now)
	}
	if f := m.LastFailure; f != nil {
		out.Failure = mailbox.LastFailure{Category: mailbox.Category(f.Category), Reason: f.Reason, At: f.At}
	}
	return out, nil
}
