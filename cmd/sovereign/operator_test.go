package main

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/supervisor"
)

// I1, the clock is set back: a process that an upgrade has passed on is known to have
// been started by the wall clock only. However that stands now, what is said of its slot
// can be read. Leave max out of lasted and this fails.
func TestOperator_ASlotThatBeganInTheFutureCanBeRead(t *testing.T) {
	said, err := json.Marshal(operator{}.slot("job", supervisor.SlotStatus{Slot: 1, State: "up", Uptime: -time.Hour}))
	if err != nil {
		t.Fatal(err)
	}
	var got protocol.SlotStatus
	if err := json.Unmarshal(said, &got); err != nil || got.Uptime != 0 {
		t.Errorf("%s: %v, %v", said, got.Uptime, err)
	}
}
