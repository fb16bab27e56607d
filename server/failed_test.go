package server_test

import (
	"strings"
	"testing"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/server"
)

// hopeless is an operator whose one actor has failed.
type hopeless struct{ *operator }

func (hopeless) Status() protocol.Status {
	return protocol.Status{Actors: []protocol.ActorStatus{{Actor: "resize", Mode: "worker", State: "failed"}}}
}

// A message that waits for an actor which has failed says so, and not that it waits
// for a free slot.
func TestControl_ShowSaysThatTheActorHasFailed(t *testing.T) {
	h := newHouse(t)
	id := h.send("resize", "x")
	for _, c := range []struct {
		supervisor server.Supervisor
		want       string
	}{
		{&operator{box: h.box}, "free slot"},
		{hopeless{&operator{box: h.box}}, "sovereign start resize"},
	} {
		control := server.NewControl(h.box, c.supervisor, "test", h.data)
		got, err := control.Handle(t.Context(), protocol.MethodInboxShow, []byte(`{"id":"`+id+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		if m, ok := got.(protocol.MessageDetail); !ok || !strings.Contains(m.Why, c.want) {
			t.Errorf("got %+v, want %q", got, c.want)
		}
	}
}
