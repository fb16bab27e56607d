package protocol

// A SlotState is where a slot stands (docs/states.md), and an actor as its worst
// slot.
type SlotState string

// The states of slots.
const (
	SlotStopped     SlotState = "stopped"     // nobody wants it to run
	SlotWaiting     SlotState = "waiting"     // wanted, but an actor named in `after` is not ready
	SlotIdle        SlotState = "idle"        // a task waits for a message
	SlotWithdrawing SlotState = "withdrawing" // a start is being called off
	SlotSpawning    SlotState = "spawning"    // its process is being made
	SlotStarting    SlotState = "starting"    // its process lives and is not ready yet
	SlotUp          SlotState = "up"          // its process lives and is ready
	SlotStopping    SlotState = "stopping"    // its process was asked to end
	SlotEnding      SlotState = "ending"      // its process has ended, or is being killed
	SlotBackoff     SlotState = "backoff"     // waits before the next start
	SlotFailed      SlotState = "failed"      // ended too often; waits for a person
	SlotStuck       SlotState = "stuck"       // something of its tree cannot be killed
	SlotExited      SlotState = "exited"      // ended, and the restart policy says to leave it so
)

// What an actor, and no slot, can be besides.
const (
	ActorPaused  SlotState = "paused"  // deliveries are paused, and nothing is worse
	ActorOffline SlotState = "offline" // no supervisor runs it
	ActorRemoved SlotState = "removed" // not declared any more; its messages are still there
)

// SlotStates are all states of a slot, in the order of its life.
var SlotStates = [...]SlotState{SlotStopped, SlotWaiting, SlotIdle, SlotWithdrawing, SlotSpawning, SlotStarting, SlotUp,
	SlotStopping, SlotEnding, SlotBackoff, SlotFailed, SlotStuck, SlotExited}

// A MessageState is where a message stands.
type MessageState string

// The states of messages.
const (
	MessageNew     MessageState = "NEW"     // waits, perhaps for its due time
	MessageClaimed MessageState = "CLAIMED" // an attempt is under way
	MessageDone    MessageState = "DONE"    // completed
	MessageDead    MessageState = "DEAD"    // given up
	MessageParked  MessageState = "PARKED"  // waits for a person
)

// MessageStates are all states of a message that people see.
var MessageStates = [...]MessageState{MessageNew, MessageClaimed, MessageDone, MessageDead, MessageParked}

// Ended reports whether nothing more happens to a message in this state until a
// person acts.
func (s MessageState) Ended() bool {
	return s == MessageDone || s == MessageDead || s == MessageParked
}

// A SupervisorState is whether a supervisor runs.
type SupervisorState string

// The states of a supervisor.
const (
	SupervisorRunning SupervisorState = "running"
	SupervisorStopped SupervisorState = "stopped" // the answer is what is on record
)
