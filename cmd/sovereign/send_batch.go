package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

// runBatch sends the lines of a file, all or none. Nothing is sent before the last of
// them has been read.
func (o sendOptions) runBatch(ctx context.Context, io streams, to string) error {
	if locate(o.data, os.Getenv).inherited.Process != "" {
		return usage("a worker sends no batches", "what it sends belongs to its claim, one by one", "send each, or complete with several: see `send` in docs/protocol.md")
	}
	if o.timeout != 0 && !o.wait {
		return errTimeoutAlone
	}
	batch, err := o.readBatch(io, to)
	if err != nil {
		return err
	}
	if len(batch) == 0 {
		return o.tellNothing(io)
	}
	conn, err := o.connect(ctx, toWrite)
	if err != nil {
		return err
	}
	shown := newCounter(io.err, "sending", o.json)
	if conn.client != nil {
		conn.client.told = func(method string, params json.RawMessage) {
			var p protocol.Progress
			if method == protocol.NotifyProgress && json.Unmarshal(params, &p) == nil {
				shown.show(int64(p.Done), int64(p.Total))
			}
		}
	}
	var sent protocol.SendBatchResult
	err = conn.call(ctx, protocol.MethodSendBatch, protocol.SendBatchParams{Messages: batch}, &sent)
	running := conn.client != nil
	err = errors.Join(err, conn.Close())
	shown.end()
	if err != nil {
		return err
	}
	if o.json && !o.wait {
		return writeJSON(io.out, sent)
	}
	if !o.json {
		if err := o.tellBatch(io, batch, sent, running); err != nil {
			return err
		}
	}
	if o.wait {
		return o.awaitBatch(ctx, io, batch, sent.Messages)
	}
	return nil
}

// tellNothing says that the batch holds no message, which is no error: what writes a batch
// of what there is to do may find nothing.
func (o sendOptions) tellNothing(io streams) error {
	switch {
	case !o.json:
		_, err := fmt.Fprintln(io.err, "nothing to send: the batch is empty")
		return err
	case o.wait:
		return nil // no message, no line
	}
	return writeJSON(io.out, protocol.SendBatchResult{Messages: []protocol.SendResult{}})
}

// tellBatch prints the ids, unless each is waited for, and what a person may want to know
// beside them.
func (o sendOptions) tellBatch(io streams, batch []protocol.BatchMessage, sent protocol.SendBatchResult, running bool) error {
	duplicates, waits := 0, []string{}
	for i, m := range sent.Messages {
		if m.Recipient != "" {
			waits = append(waits, batch[i].To+" is "+printable(m.Recipient))
		}
		if m.Duplicate {
			duplicates++
		}
		if o.wait {
			continue
		}
		if _, err := fmt.Fprintln(io.out, m.ID); err != nil {
			return err
		}
	}
	if duplicates > 0 {
		fmt.Fprintf(io.err, "%d of %d were sent before; nothing new was sent for them\n", duplicates, len(sent.Messages))
	}
	slices.Sort(waits)
	for _, who := range slices.Compact(waits) {
		fmt.Fprintln(io.err, "some wait: "+who)
	}
	if !running && !o.wait {
		fmt.Fprintln(io.err, noSupervisor)
	}
	return nil
}

// inParts is the command that sends a batch of which so many messages, and no more, go
// into one request.
func (o sendOptions) inParts(to string, fit int) string {
	if fit < mailbox.MaxBatch {
		fit = max(1, fit/2) // by their size; others may be larger
	}
	send := "sovereign send"
	if to != "" {
		send += " " + shellQuote(to)
	}
	if o.data != "" {
		send += " --data " + shellQuote(o.data)
	}
	return fmt.Sprintf("`split -l %d --filter=%s %s`", fit, shellQuote(send+" --batch -"), shellQuote(o.batch))
}

func (o sendOptions) readBatch(io streams, to string) ([]protocol.BatchMessage, error) {
	file, err := openLines(io.in, o.batch)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var batch []protocol.BatchMessage
	room := requestRoom
	err = eachLine(file, func(line int, m protocol.BatchMessage, _ int) error {
		m.Line = line
		if m.To == "" {
			m.To = to
		}
		if m.To == "" {
			return usage(fmt.Sprintf("line %d: names no recipient", line), "no actor is given to the command either", `add "to", or name the actor: sovereign send ACTOR --batch FILE`)
		}
		n, err := encodedSize(line, m)
		if err != nil {
			return err
		}
		if room -= n; room < 0 || len(batch) == mailbox.MaxBatch {
			return usage(fmt.Sprintf("line %d: the batch is too large", line),
				fmt.Sprintf("a batch has at most %d messages, which together make %s", mailbox.MaxBatch, size(protocol.MaxLine)),
				"send it in parts, with keys, so that a part that is sent twice does no harm: "+o.inParts(to, len(batch)))
		}
		batch = append(batch, m)
		return nil
	})
	if _, ok := errors.AsType[lineError](err); ok {
		said := *refusal.Of(err)
		said.Why = strings.TrimPrefix(said.Why+"; nothing was sent", "; ")
		said.Next = "correct the line, and send the whole batch again: it is sent all at once or not at all"
		return nil, said.Because(err)
	}
	return batch, err
}
