package server_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/server"
)

// watched is a connection that tells when a write to it begins to wait for room.
type watched struct {
	*net.UnixConn
	waits chan struct{} // gets one for each deadline that is set
	until time.Time     // the deadline that stands
}

func (w *watched) SetWriteDeadline(t time.Time) error {
	w.until = t
	if !t.IsZero() {
		w.waits <- struct{}{}
	}
	return w.UnixConn.SetWriteDeadline(t)
}

// A peer that makes no room in time is given up; one that reads gets every byte,
// however often a write had to wait, and its time begins anew with the next write.
// Leave the deadline of a write that waited in place and this fails.
func TestPatient_GivesUpOnlyWhoDoesNotRead(t *testing.T) {
	large := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	ours, theirs := socketPair(t)
	defer ours.Close()
	defer theirs.Close()
	conn := &watched{UnixConn: ours.(*net.UnixConn), waits: make(chan struct{})}
	reads := make(chan []byte)
	go func() {
		defer close(reads)
		for range 2 {
			<-conn.waits
			b := make([]byte, len(large))
			if _, err := io.ReadFull(theirs, b); err != nil {
				return
			}
			reads <- b
		}
	}()
	to := server.NewPatient(conn, patience)
	for range 2 {
		if n, err := to.Write(large); n != len(large) || err != nil {
			t.Fatalf("wrote %d bytes, %v", n, err)
		}
		if got := <-reads; !bytes.Equal(got, large) {
			t.Fatal("other bytes were read than were written")
		}
		if !conn.until.IsZero() {
			t.Fatal("the next write has what is left of this one's time")
		}
	}

	const timeout = 50 * time.Millisecond
	silent, unread := socketPair(t)
	defer silent.Close()
	defer unread.Close()
	start := time.Now()
	n, err := server.NewPatient(silent, timeout).Write(large)
	if !errors.Is(err, os.ErrDeadlineExceeded) || n == len(large) || time.Since(start) < timeout {
		t.Fatalf("to a peer that does not read: %d bytes, %v, after %s", n, err, time.Since(start))
	}
}
