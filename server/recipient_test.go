package server_test

import (
	"testing"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/server"
)

// hopeless is an operator whose one actor has failed.
type hopeless struct{ *operator }

func (hopeless) HasFailed(actor string) bool { return actor == "resize" }

// Report 4.9 #82: a send to an agent that was dead "succeeded", and its sender waited for
// hours. The answer says that the recipient has failed.
func TestSend_SaysThatTheRecipientHasFailed(t *testing.T) {
	h := newHouse(t)
	for _, c := range []struct {
		supervisor server.Supervisor
		recipient  string
	}{{&operator{box: h.box}, ""}, {hopeless{&operator{box: h.box}}, "failed"}} {
		control := server.NewControl(h.box, c.supervisor, "test", h.data)
		sent, err := control.Handle(t.Context(), protocol.MethodSend, []byte(`{"to":"resize"}`))
		if err != nil || sent.(protocol.SendResult).Recipient != c.recipient {
			t.Errorf("sent %+v, want %q, %v", sent, c.recipient, err)
		}
		several, err := control.Handle(t.Context(), protocol.MethodSendBatch, []byte(`{"messages":[{"to":"resize"},{"to":"other"}]}`))
		if err != nil || several.(protocol.SendBatchResult).Messages[0].Recipient != c.recipient || several.(protocol.SendBatchResult).Messages[1].Recipient != "" {
			t.Errorf("sent %+v, want %q, %v", several, c.recipient, err)
		}
	}
}

// Report 4.9 #82, the same of a recipient whose deliveries are held back: the answer says
// that it is paused, until it is resumed. Leave Paused out of obstacle and this fails.
func TestSend_SaysThatTheRecipientIsPaused(t *testing.T) {
	h := newHouse(t)
	for _, c := range []struct {
		paused    bool
		recipient string
	}{{true, "paused"}, {false, ""}} {
		if err := h.box.SetPaused(t.Context(), "resize", c.paused); err != nil {
			t.Fatal(err)
		}
		sent, err := h.control.Handle(t.Context(), protocol.MethodSend, []byte(`{"to":"resize"}`))
		if err != nil || sent.(protocol.SendResult).Recipient != c.recipient {
			t.Errorf("sent %+v, want %q, %v", sent, c.recipient, err)
		}
	}
}
