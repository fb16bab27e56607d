package supervisor

import "github.com/sovereign-run/sovereign/config"

// An after is what is known once nothing of a process is left, for the question
// what comes next.
type after struct {
	wanted   bool // somebody wants the slot to run
	asked    bool // we asked the process to end: a stop or a restart
	started  bool // there was a process
	success  bool // it ended by itself, with status 0
	spent    bool // the slot has ended more often than its intensity allows
	renewed  bool // its definition is no longer that of the slot, which is to try the new one
	short    bool // no start was made for want of descriptors, which is not the actor's fault
	hopeless bool // the next start would fail the same way until a person repairs something
}

// next says what comes next for a slot.
//
//	mode            ended with          restart: always   on-failure   never
//	worker, daemon  status 0            later             finish       finish
//	worker, daemon  another, a signal   later             later        finish
//	task            anything            again             again        again
//	any             not started         later             later        later
//
// A task's message is governed by its own retry. Where it says later and the
// slot has ended too often, it gives up. What is not wanted any more rests; what
// was asked to end and is wanted again starts at once, and so does what was
// defined otherwise meanwhile.
func next(mode config.Mode, policy config.Restart, a after) event {
	switch {
	case !a.wanted:
		return rest
	case a.hopeless:
		return giveUp
	case a.asked, a.renewed:
		return again
	case !a.started:
	case mode == config.Task:
		return again
	case policy == config.Never, policy == config.OnFailure && a.success:
		return finish
	}
	if a.spent {
		return giveUp
	}
	return later
}
