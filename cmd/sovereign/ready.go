package main

import (
	"slices"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/supervisor"
)

// allUp says whether every actor runs that is to run, or has shown that it
// cannot: one that fails does not keep the others from being used.
func allUp(running []supervisor.ActorStatus, blocked map[string]string) bool {
	return !slices.ContainsFunc(running, func(a supervisor.ActorStatus) bool {
		return blocked[a.Actor] == "" && slices.ContainsFunc(a.Slots, func(s supervisor.SlotStatus) bool { return onItsWay(a.Mode, s.State) })
	})
}

// onItsWay says whether a slot in this state has not been up yet. A task's slot
// is up when it takes messages.
func onItsWay(mode config.Mode, state protocol.SlotState) bool {
	switch state {
	case protocol.SlotStopped, protocol.SlotWaiting:
		return true
	case protocol.SlotIdle, protocol.SlotWithdrawing, protocol.SlotSpawning, protocol.SlotStarting:
		return mode != config.Task
	default:
		return false
	}
}
