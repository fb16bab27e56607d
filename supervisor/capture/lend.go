package capture

import "sync"

// maxLent is the room of the largest slice that is kept for the next, in bytes.
const maxLent = 1 << 20

// lent lends the slices in which output waits: for the disk, for the console, for the
// end of its line. What flows goes through the same few again and again, and an idle
// stream holds none. As buffers, it is a variable of the package because all share it.
var lent lender

// A lender lends slices of bytes. It forgets those that nobody wants when the garbage
// collector has run twice.
type lender struct{ pool sync.Pool }

// get returns an empty slice, nil where there is none to lend.
func (l *lender) get() []byte {
	if b, ok := l.pool.Get().(*[]byte); ok {
		return (*b)[:0]
	}
	return nil
}

// put takes a slice back, which its caller does not use any more.
func (l *lender) put(b []byte) {
	if cap(b) > 0 && cap(b) <= maxLent {
		l.pool.Put(&b)
	}
}
