package capture

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	// MaxBlock is the longest time for which a child's write waits for the disk.
	MaxBlock = 250 * time.Millisecond
	// maxQueue is how many bytes wait for the disk; as many again may be under way.
	maxQueue = 512 << 10
)

// A segment describes a run of bytes.
type segment struct {
	size    int
	at      int64 // Unix nanoseconds
	stream  string
	process string
	partial bool
}

// A queue lies between the pipes of one slot and its file. The goroutine that
// writes exists only while there is something to write.
type queue struct {
	file  *file         // owned by the writing goroutine, or by whoever set writing
	block time.Duration // MaxBlock, but for tests

	mu       sync.Mutex
	data     []byte        // mu guards
	segments []segment     // mu guards; their sizes add up to len(data)
	writing  bool          // mu guards
	choked   bool          // mu guards; a wait for room was in vain, and no write has succeeded since
	room     chan struct{} // mu guards; closed when data was taken or writing ended
	fresh    bool          // mu guards; open the file anew
	limits   *limits       // mu guards; of the file, from now on; nil = as they are
	again    bool          // mu guards; have the file rest, though it did
	closed   bool          // mu guards
	kept     int64         // mu guards
	lost     int64         // mu guards
	untold   int64         // mu guards; of lost, what no note in the file says yet
	err      error         // mu guards; of the last write
}

// limits are how much a file keeps.
type limits struct {
	maxSize int64
	keep    int
}

func newQueue(f *file) *queue {
	q := &queue{file: f, block: MaxBlock, room: make(chan struct{})}
	f.restAgain = q.restAgain
	return q
}

// add queues a run. With no room it waits up to block, and then drops runs at
// once until the disk takes something again.
func (q *queue) add(run []byte, s segment) {
	q.mu.Lock()
	defer q.mu.Unlock()
	s.size = len(run)
	if !q.waitRoom(len(run)) {
		q.loseLocked(int64(len(run)))
		return
	}
	if q.data == nil {
		q.data = lent.get()
	}
	q.data = append(q.data, run...)
	q.segments = append(q.segments, s)
	q.startLocked()
}

func (q *queue) startLocked() {
	if !q.writing {
		q.writing = true
		go q.write() // ends when the queue is empty; wait waits for it
	}
}

// restAgain has the file rest once there is nothing to write, also where it does already.
func (q *queue) restAgain() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.again = true
	q.startLocked()
}

// waitRoom gives mu back while it waits.
func (q *queue) waitRoom(n int) bool {
	var timeout <-chan time.Time
	for {
		if q.closed {
			return false
		}
		if len(q.data) == 0 || len(q.data)+n <= maxQueue {
			return true
		}
		if q.choked {
			return false
		}
		if timeout == nil {
			timeout = time.After(q.block)
		}
		room := q.room
		q.mu.Unlock()
		select {
		case <-room:
			q.mu.Lock()
		case <-timeout:
			q.mu.Lock()
			q.choked = true
		}
	}
}

func (q *queue) loseLocked(n int64) {
	q.lost += n
	q.untold += n
}

// write writes until there is nothing left, and then closes the file if the queue is closed.
func (q *queue) write() {
	rested := false // the file was told that there is nothing to write
	for {
		q.mu.Lock()
		if len(q.data) == 0 && q.closed && q.file.taken {
			q.mu.Unlock()
			q.file.close()
			continue
		}
		if len(q.data) == 0 && q.fresh {
			q.fresh = false
			q.mu.Unlock()
			q.file.reopen()
			continue
		}
		if len(q.data) == 0 && (q.again || !rested) {
			q.again = false
			q.mu.Unlock()
			q.file.rest()
			rested = true
			continue
		}
		rested = false
		if len(q.data) == 0 {
			q.writing = false
			q.wakeLocked()
			q.mu.Unlock()
			return
		}
		data, segments, untold, cause := q.data, q.segments, q.untold, q.err
		q.data, q.segments = nil, nil
		fresh := q.fresh
		q.fresh = false
		limits := q.limits
		q.limits = nil
		q.wakeLocked()
		q.mu.Unlock()

		if fresh {
			q.file.reopen()
		}
		if limits != nil {
			q.file.maxSize, q.file.keep = limits.maxSize, limits.keep
		}
		told, lost, err := q.file.write(data, segments, untold, cause)
		size := len(data)
		lent.put(data)

		q.mu.Lock()
		if told {
			q.untold -= untold
		}
		q.kept += int64(size - lost)
		q.loseLocked(int64(lost))
		q.err = err
		if err == nil {
			q.choked = false
		}
		q.mu.Unlock()
	}
}

// wakeLocked wakes whoever waits for room or for the end.
func (q *queue) wakeLocked() {
	close(q.room)
	q.room = make(chan struct{})
}

// wait waits until all that was added is with the file, or lost.
func (q *queue) wait(ctx context.Context) error {
	for {
		q.mu.Lock()
		writing, room := q.writing, q.room
		q.mu.Unlock()
		if !writing {
			return nil
		}
		select {
		case <-room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// reopen has the file let go of, also while there is nothing to write.
func (q *queue) reopen() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.fresh = true
	q.startLocked()
}

func (q *queue) limit(maxSize int64, keep int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.limits = &limits{maxSize, keep}
}

func (q *queue) lostBytes() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lost
}

func (q *queue) keptBytes() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.kept
}

func (q *queue) lastError() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.err
}

// close refuses further runs and closes the file, unless a write is under way: then
// that closes it at its end.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.wakeLocked()
	if !q.writing {
		q.file.close()
	}
}

var errShort = errors.New("short write")
