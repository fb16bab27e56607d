package server

import (
	"context"

	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

// Storage is what people ask of the database itself, below the mailbox.
type Storage interface {
	// Pin calls fn with the head and the size of a copy as of now; until fn returns,
	// what lies behind the head in the file stays as it is.
	Pin(ctx context.Context, fn func(head []byte, size int64) error) error
	// Check calls fn for each structural problem until fn returns false.
	Check(ctx context.Context, fn func(problem error) bool) error
	// Room is what the database takes, and how much of that it will use again.
	Room() protocol.StoreStatus
}

// WithStorage has c answer backup, and verify the structure of s as well. It
// returns c.
func (c *Control) WithStorage(s Storage) *Control {
	c.storage = s
	return c
}

// backup holds the file until the peer has gone. It is never done.
func (c *Control) backup(in asking, _ protocol.Empty) (any, error) {
	if c.storage == nil || in.link == nil {
		return nil, refusal.New(refusal.Unavailable, "this store cannot be backed up here", "nobody answers for its file", "")
	}
	done, err := in.waiting() // it delays nobody
	if err != nil {
		return nil, err
	}
	defer done()
	return protocol.Empty{}, c.storage.Pin(in.wait, func(head []byte, size int64) error {
		if in.tell(protocol.NotifyBackupBegun, protocol.BackupBegun{Head: head, Size: size}) {
			<-in.wait.Done()
		}
		// Told before it is true: whoever is answered after it was knows.
		in.tell(protocol.NotifyBackupEnded, protocol.Empty{})
		return refusal.New(refusal.Unavailable, "the backup has ended", context.Cause(in.wait).Error(), "start it again").Later()
	})
}

// maxProblems bounds the problems that verify tells, so that it needs no more
// memory the more there are.
const maxProblems = 1000

// verify ends with whoever asked. It begins anew where the connection is passed on.
func (c *Control) verify(in asking, _ protocol.Empty) (any, error) {
	out, err := c.verified(in.wait)
	switch {
	case err == nil || in.wait.Err() == nil || isRefusal(err):
		return out, err
	case passedOn(in.wait):
		return nil, anew(protocol.MethodVerify, protocol.Empty{})
	}
	return nil, refusal.New(refusal.Unavailable, "the check was ended", "the supervisor stops", "ask again").Later()
}

func (c *Control) verified(ctx context.Context) (protocol.Verified, error) {
	out := protocol.Verified{Problems: []protocol.Problem{}}
	report := func(where, what string) {
		if len(out.Problems) == maxProblems {
			out.More++
			return
		}
		out.Problems = append(out.Problems, protocol.Problem{Where: where, What: what})
	}
	if c.storage != nil {
		err := c.storage.Check(ctx, func(problem error) bool {
			report("mailbox.db", problem.Error())
			return true
		})
		if err != nil {
			return out, err
		}
	}
	var err error
	out.Messages, err = c.box.Verify(ctx, func(p mailbox.Problem) { report(p.Where, p.What) })
	if refusal.Has(err, refusal.StoreCorrupt) && len(out.Problems) > 0 {
		err = nil // the pages that it could not read are among the problems
	}
	return out, err
}
