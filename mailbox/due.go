package mailbox

import (
	"bytes"
	"context"
	"time"

	"github.com/sovereign-run/sovereign/store"
)

// What happens to a message at a time of the wall clock, a purge or the end of its
// time to live, lies in a space of its own, in the order of those times.

// A due is an entry of such a space whose time has come.
type due struct {
	id  ID
	at  time.Time
	key []byte // the spaceKey that is to go, where only that is left of the message; nil = the message itself
}

// dueStep bounds the messages that are ended or removed between two looks at what is on
// record.
const dueStep = 256

// dueBy returns the first entries of space that are due by now, at most dueStep. Where
// these are all, next is when the one after them is; zero: there is none.
func (b *Box) dueBy(ctx context.Context, space byte, now time.Time) (list []due, next time.Time, err error) {
	err = b.store.View(ctx, func(r store.Reader) error {
		list, next = list[:0], time.Time{}
		r.Scan([]byte{space}, nil, func(k, v []byte) bool {
			at, id, ok := parseDueKey(k)
			switch {
			case !ok:
				return true
			case at.After(now):
				next = at
				return false
			}
			one := due{id: id, at: at}
			if len(v) > 1 && v[0] == keyOnly {
				one.key = bytes.Clone(v[1:])
			}
			list = append(list, one)
			return len(list) < dueStep
		})
		return nil
	})
	return list, next, err
}
