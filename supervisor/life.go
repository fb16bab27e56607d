package supervisor

import "github.com/sovereign-run/sovereign/protocol"

// A state is where a slot stands.
type state uint8

const (
	stopped     state = iota + 1 // nobody wants it to run
	waiting                      // wanted, but an actor named in `after` is not ready
	idle                         // looks for work: a task waits for a message
	withdrawing                  // a start is being called off
	spawning                     // lease, claim and process are being made
	starting                     // the process lives and is not ready yet
	up                           // the process lives and is ready
	stopping                     // the process was asked to end
	ending                       // the process has ended, or is being killed; its tree is ended and its end recorded
	backoff                      // waits before the next start
	failed                       // ended too often; waits for a person
	stuck                        // something of its tree cannot be killed
	exited                       // ended, and the restart policy says to leave it so

	numStates = int(exited) + 1
)

var stateNames = [numStates]protocol.SlotState{
	stopped: protocol.SlotStopped, waiting: protocol.SlotWaiting, idle: protocol.SlotIdle, withdrawing: protocol.SlotWithdrawing,
	spawning: protocol.SlotSpawning, starting: protocol.SlotStarting, up: protocol.SlotUp, stopping: protocol.SlotStopping,
	ending: protocol.SlotEnding, backoff: protocol.SlotBackoff, failed: protocol.SlotFailed, stuck: protocol.SlotStuck,
	exited: protocol.SlotExited,
}

func (s state) String() string { return string(stateNames[s]) }

// An event is what happens to a slot.
type event uint8

const (
	start       event = iota + 1 // somebody wants it to run
	stop                         // somebody wants it not to run
	restart                      // somebody wants a new process
	retire                       // nobody wants it any more, once its process has done what it has to do
	free                         // every actor named in `after` is ready
	work                         // there is something to start a process for
	spawned                      // the process was started
	ready                        // the process says, or was seen, to be ready
	exit                         // the process ended by itself
	kill                         // the process has to end at once: timeout, watchdog, cancelled, hurried
	stopTimeout                  // the time that a stop may take is over
	unkillable                   // something of the tree did not die of SIGKILL
	elapsed                      // the backoff is over

	// Nothing of a process is left, and its end, if there was one, is on record.
	// Which of the five it is, is decided by next (restart.go).
	rest   // not wanted any more
	again  // start at once
	later  // start after a backoff
	giveUp // ended too often
	finish // the restart policy says no

	numEvents = int(finish) + 1
)

var eventNames = [numEvents]string{
	start: "start", stop: "stop", restart: "restart", retire: "retire", free: "free", work: "work", spawned: "spawned", ready: "ready",
	exit: "exit", kill: "kill", stopTimeout: "stop timeout", unkillable: "unkillable", elapsed: "elapsed",
	rest: "rest", again: "again", later: "later", giveUp: "give up", finish: "finish",
}

func (e event) String() string { return eventNames[e] }

// An action is what the slot's owner does on the way from one state to the next.
type action uint8

const (
	nothing    action = iota + 1
	never             // the event cannot happen in this state: a bug, reported, and the slot left as it is
	await             // wait until what it comes after is ready
	seek              // look for work
	recall            // stop looking for work
	spawn             // make lease and process
	giveBack          // return work that is not wanted any more
	watch             // wait until the process is ready
	finishUp          // have the process take no new work, and stop it once it has none
	terminate         // ask the process to end, and start the clock of stop.timeout
	end               // kill what is left of the tree, drain its output, record its end
	killAgain         // send SIGKILL to the tree once more
	delayStart        // start the clock of the backoff

	numActions = int(delayStart) + 1
)

var actionNames = [numActions]string{
	nothing: "–", never: "never", await: "await", seek: "seek", recall: "recall", spawn: "spawn", giveBack: "give back",
	watch: "watch", finishUp: "finish up", terminate: "terminate", end: "end", killAgain: "kill again", delayStart: "delay start",
}

func (a action) String() string { return actionNames[a] }

// A step is one cell: where the slot goes, and what is done on the way.
type step struct {
	to state
	do action
}

// table is the whole life of a slot. A missing cell is a bug; TestTable looks
// for it. What a slot waits for, a clock or a dependency, belongs to its state
// and ends with it. docs/states.md holds the same table.
var table = [numStates][numEvents]step{
	stopped: {
		start: {waiting, await}, stop: {stopped, nothing}, restart: {waiting, await}, retire: {stopped, nothing},
		free: {stopped, nothing}, work: {stopped, never}, spawned: {stopped, never}, ready: {stopped, nothing},
		exit: {stopped, never}, kill: {stopped, nothing}, stopTimeout: {stopped, nothing}, unkillable: {stopped, never}, elapsed: {stopped, nothing},
		rest: {stopped, never}, again: {stopped, never}, later: {stopped, never}, giveUp: {stopped, never}, finish: {stopped, never},
	},
	waiting: {
		start: {waiting, nothing}, stop: {stopped, nothing}, restart: {waiting, nothing}, retire: {stopped, nothing},
		free: {idle, seek}, work: {waiting, never}, spawned: {waiting, never}, ready: {waiting, nothing},
		exit: {waiting, never}, kill: {waiting, nothing}, stopTimeout: {waiting, nothing}, unkillable: {waiting, never}, elapsed: {waiting, nothing},
		rest: {waiting, never}, again: {waiting, never}, later: {waiting, never}, giveUp: {waiting, never}, finish: {waiting, never},
	},
	idle: {
		start: {idle, nothing}, stop: {withdrawing, recall}, restart: {idle, nothing}, retire: {withdrawing, recall},
		free: {idle, nothing}, work: {spawning, spawn}, spawned: {idle, never}, ready: {idle, nothing},
		exit: {idle, never}, kill: {idle, nothing}, stopTimeout: {idle, nothing}, unkillable: {idle, never}, elapsed: {idle, nothing},
		rest: {stopped, nothing}, again: {waiting, await}, later: {backoff, delayStart}, giveUp: {failed, nothing}, finish: {idle, never},
	},
	withdrawing: {
		start: {spawning, nothing}, stop: {withdrawing, nothing}, restart: {spawning, nothing}, retire: {withdrawing, nothing},
		free: {withdrawing, nothing}, work: {withdrawing, giveBack}, spawned: {stopping, terminate}, ready: {withdrawing, nothing},
		exit: {withdrawing, never}, kill: {withdrawing, nothing}, stopTimeout: {withdrawing, nothing}, unkillable: {withdrawing, never}, elapsed: {withdrawing, nothing},
		rest: {stopped, nothing}, again: {withdrawing, never}, later: {withdrawing, never}, giveUp: {withdrawing, never}, finish: {withdrawing, never},
	},
	spawning: {
		start: {spawning, nothing}, stop: {withdrawing, nothing}, restart: {spawning, nothing}, retire: {spawning, nothing},
		free: {spawning, nothing}, work: {spawning, spawn}, spawned: {starting, watch}, ready: {spawning, nothing},
		exit: {spawning, never}, kill: {spawning, nothing}, stopTimeout: {spawning, nothing}, unkillable: {spawning, never}, elapsed: {spawning, nothing},
		rest: {stopped, nothing}, again: {waiting, await}, later: {backoff, delayStart}, giveUp: {failed, nothing}, finish: {spawning, never},
	},
	starting: {
		start: {starting, nothing}, stop: {stopping, terminate}, restart: {stopping, terminate}, retire: {starting, finishUp},
		free: {starting, nothing}, work: {starting, never}, spawned: {starting, never}, ready: {up, nothing},
		exit: {ending, end}, kill: {ending, end}, stopTimeout: {starting, nothing}, unkillable: {starting, never}, elapsed: {starting, nothing},
		rest: {starting, never}, again: {starting, never}, later: {starting, never}, giveUp: {starting, never}, finish: {starting, never},
	},
	up: {
		start: {up, nothing}, stop: {stopping, terminate}, restart: {stopping, terminate}, retire: {up, finishUp},
		free: {up, nothing}, work: {up, never}, spawned: {up, never}, ready: {up, nothing},
		exit: {ending, end}, kill: {ending, end}, stopTimeout: {up, nothing}, unkillable: {up, never}, elapsed: {up, nothing},
		rest: {up, never}, again: {up, never}, later: {up, never}, giveUp: {up, never}, finish: {up, never},
	},
	stopping: {
		start: {stopping, nothing}, stop: {stopping, nothing}, restart: {stopping, nothing}, retire: {stopping, nothing},
		free: {stopping, nothing}, work: {stopping, never}, spawned: {stopping, never}, ready: {stopping, nothing},
		exit: {ending, end}, kill: {ending, end}, stopTimeout: {ending, end}, unkillable: {stopping, never}, elapsed: {stopping, nothing},
		rest: {stopping, never}, again: {stopping, never}, later: {stopping, never}, giveUp: {stopping, never}, finish: {stopping, never},
	},
	ending: {
		start: {ending, nothing}, stop: {ending, nothing}, restart: {ending, nothing}, retire: {ending, nothing},
		free: {ending, nothing}, work: {ending, never}, spawned: {ending, never}, ready: {ending, nothing},
		exit: {ending, nothing}, kill: {ending, nothing}, stopTimeout: {ending, nothing}, unkillable: {stuck, nothing}, elapsed: {ending, nothing},
		rest: {stopped, nothing}, again: {waiting, await}, later: {backoff, delayStart}, giveUp: {failed, nothing}, finish: {exited, nothing},
	},
	backoff: {
		start: {waiting, await}, stop: {stopped, nothing}, restart: {waiting, await}, retire: {stopped, nothing},
		free: {backoff, nothing}, work: {backoff, never}, spawned: {backoff, never}, ready: {backoff, nothing},
		exit: {backoff, never}, kill: {backoff, nothing}, stopTimeout: {backoff, nothing}, unkillable: {backoff, never}, elapsed: {waiting, await},
		rest: {backoff, never}, again: {backoff, never}, later: {backoff, never}, giveUp: {backoff, never}, finish: {backoff, never},
	},
	failed: {
		start: {waiting, await}, stop: {stopped, nothing}, restart: {waiting, await}, retire: {stopped, nothing},
		free: {failed, nothing}, work: {failed, never}, spawned: {failed, never}, ready: {failed, nothing},
		exit: {failed, never}, kill: {failed, nothing}, stopTimeout: {failed, nothing}, unkillable: {failed, never}, elapsed: {failed, nothing},
		rest: {failed, never}, again: {failed, never}, later: {failed, never}, giveUp: {failed, never}, finish: {failed, never},
	},
	stuck: {
		start: {stuck, killAgain}, stop: {stuck, killAgain}, restart: {stuck, killAgain}, retire: {stuck, nothing},
		free: {stuck, nothing}, work: {stuck, never}, spawned: {stuck, never}, ready: {stuck, nothing},
		exit: {stuck, nothing}, kill: {stuck, killAgain}, stopTimeout: {stuck, nothing}, unkillable: {stuck, nothing}, elapsed: {stuck, nothing},
		rest: {stopped, nothing}, again: {waiting, await}, later: {backoff, delayStart}, giveUp: {failed, nothing}, finish: {exited, nothing},
	},
	exited: {
		start: {waiting, await}, stop: {stopped, nothing}, restart: {waiting, await}, retire: {stopped, nothing},
		free: {exited, nothing}, work: {exited, never}, spawned: {exited, never}, ready: {exited, nothing},
		exit: {exited, never}, kill: {exited, nothing}, stopTimeout: {exited, nothing}, unkillable: {exited, never}, elapsed: {exited, nothing},
		rest: {exited, never}, again: {exited, never}, later: {exited, never}, giveUp: {exited, never}, finish: {exited, never},
	},
}

// A life is where a slot stands and what somebody wants of it. It is a value:
// nothing happens but in step's caller.
type life struct {
	at   state
	want bool // somebody wants the slot to run; set by start and restart, cleared by stop and retire
}

// on is the life after e, and what is to be done. Events that say what is wanted
// change that first.
func (l life) on(e event) (life, action) {
	switch e {
	case start, restart:
		l.want = true
	case stop, retire:
		l.want = false
	}
	cell := table[l.at][e]
	l.at = cell.to
	return l, cell.do
}

// settled reports whether a slot in state s stays there until something happens
// to it: a start or a stop has reached its end.
func (s state) settled() bool {
	switch s {
	case withdrawing, spawning, starting, stopping, ending:
		return false
	}
	return true
}

// lives reports whether a slot in state s can have a living process.
func (s state) lives() bool {
	switch s {
	case starting, up, stopping, ending, stuck:
		return true
	}
	return false
}
