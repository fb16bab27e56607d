package server

import (
	"bufio"
	"context"
	"io"

	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

// Storage is what people ask of the database itself, below the mailbox.
type Storage interface {
	// Backup writes a copy as of now to w; begun is told its size first.
	Backup(ctx context.Context, w io.Writer, begun func(size int64)) error
	// Check calls fn for each structural problem until fn returns false.
	Check(ctx context.Context, fn func(problem error) bool) error
}

// WithStorage has c answer backup, and verify the structure of s as well. It
// returns c.
func (c *Control) WithStorage(s Storage) *Control {
	c.storage = s
	return c
}

// backupChunk is the size of the chunks of a backup, in bytes.
const backupChunk = 256 << 10

func (c *Control) backup(in asking, _ protocol.Empty) (any, error) {
	if c.storage == nil || in.tell == nil {
		return nil, refusal.New(refusal.Unavailable, "this store cannot be backed up here", "nobody answers for its file", "")
	}
	done, err := in.waiting() // it delays nobody
	if err != nil {
		return nil, err
	}
	defer done()
	var out protocol.BackupResult
	w := bufio.NewWriterSize(writerFunc(func(b []byte) (int, error) {
		if !in.tell(protocol.NotifyBackup, protocol.BackupChunk{Size: out.Size, Data: b}) {
			return 0, errPeerGone
		}
		return len(b), nil
	}), backupChunk)
	if err := c.storage.Backup(in.wait, w, func(size int64) { out.Size = size }); err != nil {
		return nil, err
	}
	return out, w.Flush()
}

type writerFunc func(b []byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// maxProblems bounds the problems that verify tells, so that it needs no more
// memory the more there are.
const maxProblems = 1000

func (c *Control) verify(in asking, _ protocol.Empty) (any, error) {
	out := protocol.Verified{Problems: []protocol.Problem{}}
	report := func(where, what string) {
		if len(out.Problems) == maxProblems {
			out.More++
			return
		}
		out.Problems = append(out.Problems, protocol.Problem{Where: where, What: what})
	}
	if c.storage != nil {
		err := c.storage.Check(in.wait, func(problem error) bool {
			report("mailbox.db", problem.Error())
			return true
		})
		if err != nil {
			return nil, err
		}
	}
	var err error
	out.Messages, err = c.box.Verify(in.wait, func(p mailbox.Problem) { report(p.Where, p.What) })
	if refusal.Has(err, refusal.StoreCorrupt) && len(out.Problems) > 0 {
		err = nil // the pages that it could not read are among the problems
	}
	return out, err
}
