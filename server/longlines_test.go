package server

import (
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// Who does not finish a long line in time is disconnected; who does is not.
func TestLongLines_AreFinishedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(nil, nil, nil, nil)
		slow, slowEnd := net.Pipe()
		quick, quickEnd := net.Pipe()
		s.longLines(slow, true)
		over := s.longLines(slow, true)()
		s.longLines(quick, true)()()
		time.Sleep(longLineTimeout + time.Second)
		synctest.Wait()
		if _, err := slowEnd.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("the slow one: %v", err)
		}
		over()
		done := make(chan struct{})
		go func() { defer close(done); _, _ = quickEnd.Write([]byte("x")) }()
		if _, err := quick.Read(make([]byte, 1)); err != nil {
			t.Errorf("the quick one: %v", err)
		}
		<-done
	})
}

// Of all other users together only so many lines are read at once: the next one
// waits until another is over.
func TestLongLines_OfOthersWaitForAPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(nil, nil, nil, nil)
		conn, end := net.Pipe()
		defer conn.Close()
		defer end.Close()
		long := s.longLines(conn, false)
		var overs []func()
		for range maxLongLinesOfOther {
			overs = append(overs, long())
		}
		entered := make(chan func())
		go func() { entered <- long() }()
		synctest.Wait()
		select {
		case <-entered:
			t.Fatal("one line too many is read")
		default:
		}
		overs[0]()
		(<-entered)()
		for _, over := range overs[1:] {
			over()
		}
		s.longLines(conn, true)()() // the supervisor's own user has places of its own
	})
}
