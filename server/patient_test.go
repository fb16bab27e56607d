package server_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/server"
)

// A peer that makes no room in time is given up; one that reads gets every byte,
// however often a write had to wait, and its time begins anew with the next write.
// Leave the deadline of a write that waited in place and this fails.
func TestPatient_GivesUpOnlyWhoDoesNotRead(t *testing.T) {
	const timeout = 2 * time.Second
	large := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	ours, theirs := socketPair(t)
	defer ours.Close()
	defer theirs.Close()
	reads := make(chan []byte)
	go func() {
		for {
			b := make([]byte, len(large))
			if _, err := io.ReadFull(theirs, b); err != nil {
				close(reads)
				return
			}
			reads <- b
		}
	}()
	to := server.NewPatient(ours, timeout)
	whole := func() {
		t.Helper()
		if n, err := to.Write(large); n != len(large) || err != nil {
			t.Fatalf("wrote %d bytes, %v", n, err)
		}
		if got := <-reads; !bytes.Equal(got, large) {
			t.Fatal("other bytes were read than were written")
		}
	}
	whole()
	silent, unread := socketPair(t)
	defer silent.Close()
	defer unread.Close()
	start := time.Now()
	n, err := server.NewPatient(silent, timeout).Write(large)
	if !errors.Is(err, os.ErrDeadlineExceeded) || n == len(large) || time.Since(start) < timeout {
		t.Fatalf("to a peer that does not read: %d bytes, %v, after %s", n, err, time.Since(start))
	}
	whole() // more than its time after the last
}
