package mailbox

import (
	"slices"

	"github.com/sovereign-run/sovereign/fence"
)

const receiptVersion = 1

// verbs are what an attempt's end can have been asked to be, as stored.
var verbs = []Status{Completed, Failed, Released, ""}

func (r *Receipt) encode(of *stock) []byte {
	e := newEncoder(of, receiptVersion, 112+len(r.Slot.Actor)+len(r.Reason))
	id, _ := r.Process.Bytes()
	e.uint(uint64(r.Token))
	e.uint(uint64(r.LeaseToken))
	e.raw(id[:])
	e.string(r.Slot.Actor)
	e.uint(uint64(r.Slot.Number))
	e.time(r.StartedAt)
	e.time(r.EndedAt)
	e.string(string(r.Status))
	e.string(string(r.Category))
	var flags byte
	if r.Counted {
		flags |= 1
	}
	if r.ByWorker {
		flags |= 2
	}
	if r.expired {
		flags |= 4
	}
	flags |= byte(slices.Index(verbs, r.verb)) << 3
	e.byte(flags)
	e.string(r.Reason)
	e.int(int64(r.ExitCode))
	e.string(r.Signal)
	return e.seal()
}

func decodeReceipt(id ID, attempt int, b []byte) (Receipt, error) {
	what := named{"a receipt of message", id}
	d, err := unseal(b, receiptVersion, what)
	if err != nil {
		return Receipt{}, err
	}
	r := Receipt{Message: id, Attempt: attempt}
	r.Token = fence.Token(d.uint())
	r.LeaseToken = fence.Token(d.uint())
	r.Process = fence.ProcessOf([16]byte(d.raw(16)))
	r.Slot.Actor = d.string()
	r.Slot.Number = int(d.uint())
	r.StartedAt = d.time()
	r.EndedAt = d.time()
	r.Status = Status(d.string())
	r.Category = Category(d.string())
	flags := d.byte()
	r.Counted = flags&1 != 0
	r.ByWorker = flags&2 != 0
	r.expired = flags&4 != 0
	r.verb = verbs[flags>>3&3]
	r.Reason = d.string()
	r.ExitCode = int(d.int())
	r.Signal = d.string()
	return r, d.done(what)
}
