package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

// howToLook is the command that shows these messages.
func howToLook(all []*sentMessage) string {
	const named = 8
	if len(all) > named {
		return "`sovereign inbox`, and `sovereign inbox show " + all[0].id + "` for one"
	}
	ids := make([]string, len(all))
	for i, m := range all {
		ids[i] = m.id
	}
	return "`sovereign inbox show " + strings.Join(ids, " ") + "`"
}

// awaitBatch waits for the end of each message, and tells of each as it ends.
func (o sendOptions) awaitBatch(ctx context.Context, io streams, batch []protocol.BatchMessage, sent []protocol.SendResult) error {
	w := newBatchWait(batch, sent, time.Now())
	w.at, w.notices = locate(o.data, os.Getenv), io.err
	total := int64(len(w.left))
	shown := newCounter(io.err, "ended", o.json)
	lacking := map[string]int{}
	var failed []*sentMessage
	w.idle = func() {}
	if !o.json {
		w.idle = sync.OnceFunc(func() { shown.end(); fmt.Fprintln(io.err, noSupervisor) })
	}
	w.ended = func(m *sentMessage, d *protocol.MessageDetail) error {
		state := "gone"
		if d != nil {
			state = string(d.State)
		}
		if d == nil || d.State != protocol.MessageDone {
			lacking[state]++
			failed = append(failed, m)
		}
		shown.end()
		for _, line := range m.lines {
			if err := o.tellEnd(io, line, m.id, state, d); err != nil {
				return err
			}
		}
		shown.of(total-int64(w.count()), total)
		return nil
	}
	stop := onInterrupt(io.err, func() string {
		rest := w.rest()
		if len(rest) == 0 {
			return ""
		}
		return fmt.Sprintf("%d of %s go on: see %s", len(rest), plural(total, "message"), howToLook(rest))
	})
	defer stop()
	defer endWithReader(io.out)()
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(o.timeout))
		defer cancel()
	}
	shown.of(0, total)
	err := w.run(ctx)
	if err != nil && ctx.Err() == context.DeadlineExceeded {
		err = w.lookAgain(ctx)
		if rest := w.rest(); len(rest) > 0 {
			err = refusal.New(refusal.Failed, fmt.Sprintf("%d of %s have not ended within %s", len(rest), plural(total, "message"), o.timeout.String()),
				"", "see "+howToLook(rest)).Later().Because(err)
		}
	}
	shown.end()
	switch {
	case err != nil:
		return err
	case len(failed) == 0:
		return nil
	case !o.json:
		fmt.Fprint(io.err, explain(notAllDone(lacking, failed, total)))
	}
	return statusError{status: exitFailed}
}

// notAllDone says which ended otherwise.
func notAllDone(lacking map[string]int, failed []*sentMessage, total int64) *refusal.Error {
	slices.SortFunc(failed, func(a, b *sentMessage) int { return a.lines[0] - b.lines[0] })
	var why []string
	for _, state := range []string{string(protocol.MessageDead), string(protocol.MessageParked), "gone"} {
		if lacking[state] > 0 {
			why = append(why, fmt.Sprintf("%d %s", lacking[state], state))
		}
	}
	return refusal.New(refusal.Failed, fmt.Sprintf("%d of %s are not DONE", len(failed), plural(total, "message")),
		strings.Join(why, ", "), "see "+howToLook(failed))
}

// An endedLine is how a message of a batch ended, for programs.
type endedLine struct {
	Line int `json:"line"`
	protocol.MessageDetail
}

// A goneLine is a message of a batch that is no more.
type goneLine struct {
	Line int    `json:"line"`
	ID   string `json:"id"`
	Gone bool   `json:"gone"`
}

// tellEnd writes the line of a message that has ended: its line in the batch, its id, its
// state, and its result or last failure; nil: it is gone.
func (o sendOptions) tellEnd(io streams, line int, id, state string, d *protocol.MessageDetail) error {
	if o.json {
		if d == nil {
			return writeJSON(io.out, goneLine{line, id, true})
		}
		return writeJSON(io.out, endedLine{line, *d})
	}
	_, err := fmt.Fprintf(io.out, "%d\t%s\t%s\t%s\n", line, id, state, endInShort(d))
	return err
}

// endInShort is the beginning of a result, or why there is none, on one line.
func endInShort(d *protocol.MessageDetail) string {
	switch {
	case d == nil:
		return "it has been removed"
	case d.State != protocol.MessageDone && d.LastFailure != nil:
		return protocol.Cut(d.LastFailure.Category+": "+inShort(d.LastFailure.Reason), maxInShort)
	case d.State != protocol.MessageDone:
		return printable(d.Why)
	case d.ResultBase64 != nil:
		return plural(int64(len(d.ResultBase64)), "byte") + " that are no text"
	case d.Result == nil:
		return ""
	}
	return protocol.Cut(printable(strings.TrimSuffix(*d.Result, "\n")), maxInShort)
}

// maxInShort is how much of a result or reason stands on a line, in bytes.
const maxInShort = 200
