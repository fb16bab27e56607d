package server_test

import (
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/server"
)

// standing is an operator whose one actor stands as it says.
type standing struct {
	*operator
	slots []protocol.SlotStatus
}

func (s standing) Status() protocol.Status {
	return protocol.Status{Actors: []protocol.ActorStatus{{Actor: "resize", Mode: "worker", Slots: s.slots}}}
}

// room is a store that is full or not.
type room struct {
	server.Storage
	full bool
}

func (r room) Room() protocol.StoreStatus { return protocol.StoreStatus{Full: r.full} }

// A message that nothing on record holds back says what the slots of its actor do
// instead; that they have failed only where all have.
func TestControl_ShowSaysWhatTheSlotsDo(t *testing.T) {
	const ready = "it is ready and waits for a free slot of resize: "
	const failed = "resize has failed; see `sovereign status resize`, then run `sovereign start resize`"
	works := func(ids ...string) (s protocol.SlotStatus) {
		s.Slot, s.State = 1, protocol.SlotUp
		for _, id := range ids {
			s.Claims = append(s.Claims, protocol.SlotClaim{ID: id})
		}
		return s
	}
	is := func(state protocol.SlotState, why string) protocol.SlotStatus {
		return protocol.SlotStatus{Slot: 2, State: state, Why: why}
	}
	h := newHouse(t)
	id := h.send("resize", "x")
	sent, err := h.box.Send(t.Context(), mailbox.Outgoing{To: "resize", Delay: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	later := sent.ID.String()
	notDue := "it is not due before " + h.detail(later).AvailableAt.Format(time.RFC3339)
	for _, c := range []struct {
		slots []protocol.SlotStatus
		full  bool
		id    string
		want  string
	}{
		{[]protocol.SlotStatus{works("m7")}, false, id, ready + "resize/1 works on m7"},
		{[]protocol.SlotStatus{works("m7", "m8", "m9")}, false, id, ready + "resize/1 works on m7 and 2 more"},
		{[]protocol.SlotStatus{works()}, false, id, ready + "resize/1 is up and has not asked for it"},
		{[]protocol.SlotStatus{works("m7"), is(protocol.SlotFailed, "")}, false, id, ready + "resize/1 works on m7, resize/2 has failed"},
		{[]protocol.SlotStatus{is(protocol.SlotBackoff, "the last process ended: exit status 1")}, false, id,
			ready + "resize/2 waits before its next start (the last process ended: exit status 1)"},
		{[]protocol.SlotStatus{is(protocol.SlotWaiting, "waits for db: db is not ready")}, false, id, ready + "resize/2 is not started yet (waits for db: db is not ready)"},
		{[]protocol.SlotStatus{is(protocol.SlotStarting, "")}, false, id, ready + "resize/2 is starting"},
		{[]protocol.SlotStatus{is(protocol.SlotIdle, "")}, false, id, ready + "resize/2 is free and about to take it"},
		{[]protocol.SlotStatus{is(protocol.SlotStuck, "it does not die")}, false, id, ready + "resize/2 is stuck (it does not die)"},
		{[]protocol.SlotStatus{is(protocol.SlotExited, "")}, false, id, ready + "resize/2 has ended, and its `restart` says to leave it so (`sovereign start resize`)"},
		{[]protocol.SlotStatus{works("m7"), works("m8"), works("m9"), works("m10"), works("m11")}, false, id,
			ready + "resize/1 works on m7, resize/1 works on m8, resize/1 works on m9, and 2 more"},
		{[]protocol.SlotStatus{is(protocol.SlotFailed, "x"), is(protocol.SlotFailed, "")}, false, id, failed},
		{[]protocol.SlotStatus{is(protocol.SlotFailed, "x")}, false, later, notDue + "; " + failed},
		{[]protocol.SlotStatus{works("m7")}, false, later, notDue},
		{[]protocol.SlotStatus{works("m7")}, true, id, "the disk is full, and nothing is claimed until there is room"},
		{[]protocol.SlotStatus{works("m7")}, true, later, notDue + "; the disk is full, and nothing is claimed until there is room"},
	} {
		control := server.NewControl(h.box, standing{&operator{box: h.box}, c.slots}, "test", h.data).WithStorage(room{full: c.full})
		got, err := control.Handle(t.Context(), protocol.MethodInboxShow, []byte(`{"id":"`+c.id+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		if m, ok := got.(protocol.MessageDetail); !ok || m.Why != c.want {
			t.Errorf("got  %q\nwant %q", m.Why, c.want)
		}
	}
}
