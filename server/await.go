package server

import (
	"context"
	"encoding/json"
	"time"

	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

// await waits for the end of a message that the worker's actor sent.
func (w *workers) await(raw json.RawMessage) (protocol.Identity, deed, error) {
	var p protocol.WorkerAwaitParams
	if err := protocol.ParseParams(protocol.MethodAwait, raw, &p); err != nil {
		return p.Identity, nil, err
	}
	id, err := mailbox.ParseID(p.ID)
	if err != nil {
		return p.Identity, nil, err
	}
	return p.Identity, func(in doing) answer {
		done, err := in.call.waiting()
		if err != nil {
			return refuse(err)
		}
		defer done()
		ctx, cancel := within(in.wait, p.Timeout.Std())
		defer cancel()
		d, err := w.box.AwaitSent(ctx, in.holder, id)
		gone := refusal.Has(err, refusal.MessageMissing) && d.ID != 0
		switch {
		case err == nil, gone:
		case passedOn(in.wait) && !isRefusal(err):
			return answer{again: &protocol.Request{}} // asked anew where the connection goes
		case in.wait.Err() != nil && !isRefusal(err):
			return refuse(refusal.New(refusal.Unavailable, "the wait for "+p.ID+" was ended", "the supervisor stops", "ask again").Later())
		case ctx.Err() == nil || isRefusal(err):
			return refuse(err)
		}
		return answer{result: awaited(d, gone)}
	}, nil
}

// within is ctx for d at most; 0 = for as long as ctx. cancel is to be called: ctx may be
// that of a connection, which would keep all that was made of it.
func within(ctx context.Context, d time.Duration) (_ context.Context, cancel context.CancelFunc) {
	if d <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, d)
}

func awaited(d mailbox.Detail, gone bool) protocol.Awaited {
	m := message(d.Message)
	out := protocol.Awaited{ID: m.ID, State: m.State, Gone: gone, ResultTruncated: d.ResultTruncated, LastFailure: m.LastFailure}
	if d.State == mailbox.Done {
		out.Result = d.Result
	}
	if n := len(d.Receipts); n > 0 {
		last := receipt(d.Receipts[n-1])
		out.Receipt = &last
	}
	return out
}
