package main

import (
	"context"
	"errors"

	"github.com/sovereign-run/sovereign/protocol"
)

// evidence reads the store once nothing runs any more: every message with its
// receipts, and the journal.
func (s *demoStage) evidence(ctx context.Context) (e demoEvidence, err error) {
	e = demoEvidence{Sent: s.sent, Cut: s.cut, Staged: s.staged, Refused: s.refused}
	conn, err := connectTo(ctx, s.at(), toRead)
	if err != nil {
		return e, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	for after := ""; ; {
		var page protocol.Inbox
		if err := conn.call(ctx, protocol.MethodInboxList, protocol.InboxListParams{After: after}, &page); err != nil {
			return e, err
		}
		for _, m := range page.Messages {
			var detail protocol.MessageDetail
			if err := conn.call(ctx, protocol.MethodInboxShow, protocol.InboxShowParams{ID: m.ID}, &detail); err != nil {
				return e, err
			}
			e.Messages = append(e.Messages, detail)
		}
		if after = page.Next; after == "" {
			break
		}
	}
	journal := eventsOptions{lines: -1}
	_, err = journal.past(ctx, conn, func(event protocol.Event) error {
		e.Events = append(e.Events, event)
		return nil
	})
	return e, err
}
