package supervisor

// The kinds of event that a supervisor records beside those of the mailbox.
// They are part of the public interface: `sovereign events` prints them.
const (
	eventStarted       = "started"        // a process was given its slot's lease
	eventReady         = "ready"          // it is ready
	eventNotReady      = "not_ready"      // it was not ready in time and is killed
	eventExited        = "exited"         // it ended; the text says how
	eventRestarting    = "restarting"     // the slot starts again after a delay
	eventGaveUp        = "gave_up"        // the slot ended too often, and waits for a person
	eventStopped       = "stopped"        // the slot is stopped
	eventSpawnFailed   = "spawn_failed"   // a process could not be started
	eventStuck         = "stuck"          // something did not die of SIGKILL
	eventUnstuck       = "unstuck"        // it has died after all
	eventLeftover      = "leftover_ended" // what a dead supervisor left was ended
	eventTimeout       = "timeout"        // a message took too long; its process is killed
	eventNoProgress    = "no_progress"    // the progress of a message did not change; its process is killed
	eventWatchdog      = "watchdog"       // no sign of life; the process is killed
	eventWithdrawn     = "withdrawn"      // a message was claimed for a slot that was stopped meanwhile, and given back
	eventCancelling    = "cancelling"     // an operator cancelled a message that is being worked on
	eventLeaseLost     = "lease_lost"     // a living process holds its lease no longer, and was told to stop
	eventSignalled     = "signalled"      // an operator sent a signal
	eventSupervisorUp  = "supervisor_started"
	eventSupervisorEnd = "supervisor_stopped"
)
