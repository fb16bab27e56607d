package mailbox

import (
	"testing"
	"time"
)

// A worker that was woken and goes away before it looks hands the message on: no
// message waits beside an idle worker. Remove q.wake from leave and this fails.
func TestIndex_LeaveHandsOn(t *testing.T) {
	x := newIndex(func() func() { return func() {} }, 0)
	x.loaded = true
	_, _, first, _ := x.take("work", true)
	_, _, second, _ := x.take("work", true)
	x.push("work", 1, 0, time.Time{}, time.Now())
	select {
	case <-first:
	default:
		t.Fatal("the first was not woken")
	}
	select {
	case <-second:
		t.Fatal("both were woken for one message")
	default:
	}
	x.leave("work", first)
	select {
	case <-second:
	default:
		t.Fatal("the message waits beside an idle worker")
	}
}
