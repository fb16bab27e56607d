package supervisor

import (
	"slices"
	"testing"

	"github.com/sovereign-run/sovereign/protocol"
)

// What people and programs are told of slots are the states of the table, no more
// and no fewer: a state that protocol does not list fails this.
func TestStates_AreThoseOfTheProtocol(t *testing.T) {
	if got := stateNames[stopped:]; !slices.Equal(got, protocol.SlotStates[:]) {
		t.Errorf("the slot's states are %v, the protocol's %v", got, protocol.SlotStates)
	}
}
