package protocol

// An EventKind is what an entry of the journal tells. docs/operating.md lists
// them all; a kind keeps its name and its meaning.
type EventKind string

// Of the supervisor and its store.
const (
	EventSupervisorStarted EventKind = "supervisor_started"
	EventSupervisorStopped EventKind = "supervisor_stopped" // asked to, after all its processes
	EventGap               EventKind = "gap"                // the supervisor did not run for a while
	EventClockSet          EventKind = "clock_set"          // the wall clock was set
	EventNewEpoch          EventKind = "new_epoch"          // the store was restored, or a rollback accepted
	EventDiskFull          EventKind = "disk_full"          // the store began to refuse what can wait: its disk is full
	EventDiskHasRoom       EventKind = "disk_has_room"      // it has accepted all again for a while
	EventReloaded          EventKind = "reloaded"           // an actor was changed by a reload
	EventReloadRefused     EventKind = "reload_refused"     // a reload was refused; all goes on as before
	EventUpgraded          EventKind = "upgraded"           // another program took the supervisor's place; the processes went on
	EventUpgradeRefused    EventKind = "upgrade_refused"    // an upgrade was refused; all goes on as before
	EventLeftoverEnded     EventKind = "leftover_ended"     // processes that a dead supervisor left were ended
	EventRecovered         EventKind = "recovered"          // a process was on record and is looked after no more; what it held is free
	EventWorkspaceKept     EventKind = "workspace_kept"     // a workspace could not be removed
)

// Of an actor and its slots.
const (
	EventStarted        EventKind = "started"          // a process was given its slot's lease
	EventSpawnFailed    EventKind = "spawn_failed"     // a process could not be started
	EventReady          EventKind = "ready"            // a process is ready
	EventNotReady       EventKind = "not_ready"        // it was not ready in time and is killed
	EventExited         EventKind = "exited"           // it ended; the text says how
	EventRestarting     EventKind = "restarting"       // the slot starts again after a delay
	EventGaveUp         EventKind = "gave_up"          // the slot ended too often, and waits for a person
	EventStopped        EventKind = "stopped"          // the slot is stopped
	EventStuck          EventKind = "stuck"            // something did not die of SIGKILL
	EventUnstuck        EventKind = "unstuck"          // it has died after all
	EventWatchdog       EventKind = "watchdog"         // no sign of life; the process is killed
	EventTimeout        EventKind = "timeout"          // a message took too long; its process is killed
	EventNoProgress     EventKind = "no_progress"      // the progress of a message did not change; its process is killed
	EventResultTooLarge EventKind = "result_too_large" // a task wrote more to its stdout than its result may be, and is killed
	EventLeaseLost      EventKind = "lease_lost"       // a living process holds its lease no longer, and was told to stop
	EventLeaseReset     EventKind = "lease_reset"      // an operator removed the record of a lease
	EventSignalled      EventKind = "signalled"        // an operator sent a signal
	EventPaused         EventKind = "paused"           // an operator paused deliveries
	EventResumed        EventKind = "resumed"          // an operator resumed them
	EventActorSick      EventKind = "actor_sick"       // many different messages in a row have failed
	EventActorWell      EventKind = "actor_well"       // the actor has completed one again
)

// Of a message and its attempts.
const (
	EventCompleted       EventKind = "completed"        // a message is DONE
	EventFailed          EventKind = "failed"           // an attempt failed, the message is NEW again
	EventReleased        EventKind = "released"         // an attempt was given back uncharged
	EventDead            EventKind = "dead"             // a message is DEAD
	EventParked          EventKind = "parked"           // a message waits for a person
	EventStaleCompletion EventKind = "stale_completion" // a task ended when its claim was no longer current
	EventWithdrawn       EventKind = "withdrawn"        // claimed for a slot that was stopped meanwhile, and given back
	EventCancelling      EventKind = "cancelling"       // an operator cancelled a message that is being worked on
	EventCancelled       EventKind = "cancelled"        // a message that waited was cancelled and is DEAD
	EventRetried         EventKind = "retried"          // an operator made a message NEW again
	EventDropped         EventKind = "dropped"          // an operator removed a message
	EventRefused         EventKind = "refused"          // a write under a lease or a claim that is not the worker's any more
	EventPoison          EventKind = "poison"           // several processes in a row died while they worked on a message
)
