package supervisor

import (
	"fmt"
	"strings"

	"github.com/sovereign-run/sovereign/mailbox"
)

// A cause is why a process ended: the first that was observed decides.
type cause uint8

const (
	byItself     cause = iota + 1 // it exited, or somebody else killed it
	byStop                        // a stop, restart or shutdown asked it to, and it ended within stop.timeout
	byForce                       // a stop, restart or shutdown, and it did not end within stop.timeout, or was hurried
	byTimeout                     // its message took longer than the actor's timeout
	byCancel                      // an operator cancelled a message of its
	byWatchdog                    // it showed no sign of life
	byUnready                     // it was not ready within ready.timeout
	byNoProgress                  // a claim's progress did not change for the actor's progress_timeout
	byResult                      // its stdout is larger than the actor's result.max_size
	numCauses    = int(byResult) + 1
)

var causeNames = [numCauses]string{byItself: "itself", byStop: "stop", byForce: "stop timeout", byTimeout: "timeout",
	byCancel: "cancel", byWatchdog: "watchdog", byUnready: "not ready", byNoProgress: "no progress",
	byResult: "result too large"}

func (c cause) String() string { return causeNames[c] }

// The exit statuses that say something of their own (sysexits.h).
const (
	exitDataErr  = 65
	exitTempFail = 75
)

// A death is all that is known of how a process ended.
type death struct {
	cause  cause
	code   int    // exit status; -1 when a signal ended it
	signal string // without SIG; "" = none
	last   string // last lines of stderr
	limit  string // for people: the time, or the size, that was exceeded
	memory string // limits.memory, where the kernel killed it, or a process of its, for lack of memory; "" = it did not
	over   string // of a task whose stdout is more than may be its result: how much may
}

// how is the end in words: "exit status 3", "killed by SIGSEGV".
func (e death) how() string {
	text := fmt.Sprintf("exit status %d", e.code)
	if e.signal != "" {
		text = "killed by SIG" + e.signal
	}
	switch {
	case e.memory == "":
		return text
	case e.signal == "KILL":
		return text + " by the kernel for lack of memory (limits.memory is " + e.memory + ")"
	}
	return text + ", after the kernel had killed a process of its for lack of memory (limits.memory is " + e.memory + ")"
}

// task says how the one attempt of a task ended. result is its stdout.
//
//	exit 0                       done
//	exit 75, 65, another         deferred; dead; failed
//	a signal that we did not send  not reported: worker_lost
//	timeout                      not reported: timeout
//	too large a result           not reported: result_too_large, instead of exit 0 as well
//	a stop, not exit 0 in time   interrupted
//	cancelled                    dead
func (e death) task(result []byte, cut bool) mailbox.Outcome {
	o := mailbox.Outcome{ExitCode: e.code, Signal: e.signal}
	switch e.cause {
	case byTimeout:
		o.Verdict, o.Category, o.Reason = mailbox.Unreported, mailbox.CategoryTimeout, e.withOutput("not done within "+e.limit)
	case byNoProgress:
		o.Verdict, o.Category, o.Reason = mailbox.Unreported, mailbox.CategoryNoProgress, e.withOutput("its progress did not change for "+e.limit)
	case byResult:
		return e.tooLarge()
	case byCancel:
		o.Verdict, o.Category, o.Reason = mailbox.Kill, mailbox.CategoryCancelled, "cancelled by an operator"
	case byWatchdog, byUnready:
		return e.lost()
	case byForce:
		o.Verdict, o.Category, o.Reason = mailbox.Interrupt, mailbox.CategoryInterrupted, "stopped, and killed after "+e.limit
	case byStop:
		if e.signal != "" || e.code != 0 {
			o.Verdict, o.Category, o.Reason = mailbox.Interrupt, mailbox.CategoryInterrupted, e.withOutput("stopped: "+e.how())
			break
		}
		fallthrough
	default:
		switch {
		case e.signal != "":
			return e.lost()
		case e.code == 0 && e.over != "": // it ended before it could be killed
			return e.tooLarge()
		case e.code == 0:
			o.Verdict, o.Category = mailbox.Complete, mailbox.CategoryCompleted
			o.Result, o.ResultTruncated = result, cut
		case e.code == exitTempFail:
			o.Verdict, o.Category, o.Reason = mailbox.Defer, mailbox.CategoryDeferred, e.withOutput("asked to be tried again later")
		case e.code == exitDataErr:
			o.Verdict, o.Category, o.Reason = mailbox.Kill, mailbox.CategoryBadMessage, e.withOutput("said that the message is bad")
		default:
			o.Verdict, o.Category, o.Reason = mailbox.FailAttempt, mailbox.CategoryExitStatus, e.withOutput(e.how())
		}
	}
	return o
}

// tooLarge is the end of a task that wrote more than may be its result.
func (e death) tooLarge() mailbox.Outcome {
	most := e.over
	if e.cause == byResult {
		most = e.limit
	}
	return mailbox.Outcome{Verdict: mailbox.Unreported, Category: mailbox.CategoryResultTooLarge, ExitCode: e.code, Signal: e.signal,
		Reason: e.withOutput("its stdout is larger than " + most + " (result.max_size)")}
}

// lost says how the attempts that a process still held ended with it, whatever it
// exited with: success is never inferred (P4.2).
func (e death) lost() mailbox.Outcome {
	o := mailbox.Outcome{Verdict: mailbox.Unreported, Category: mailbox.CategoryWorkerLost, ExitCode: e.code, Signal: e.signal}
	switch e.cause {
	case byStop:
		o.Verdict, o.Category, o.Reason = mailbox.Interrupt, mailbox.CategoryInterrupted, "its worker was stopped: "+e.how()
	case byForce:
		o.Verdict, o.Category, o.Reason = mailbox.Interrupt, mailbox.CategoryInterrupted, "its worker was stopped, and killed after "+e.limit
	case byCancel:
		o.Verdict, o.Category, o.Reason = mailbox.Interrupt, mailbox.CategoryInterrupted, "its worker was killed for another message, which was cancelled"
	case byTimeout:
		o.Reason = "its worker was killed for another message, which took longer than " + e.limit
	case byNoProgress:
		o.Reason = "its worker was killed for another message, whose progress did not change for " + e.limit
	case byWatchdog:
		o.Category, o.Reason = mailbox.CategoryNoProgress, "its worker showed no sign of life for "+e.limit
	case byUnready:
		o.Reason = "its worker was not ready within " + e.limit
	default:
		o.Died, o.Reason = true, e.withOutput(e.how())
	}
	return o
}

// of says how each attempt ended that a long-lived process held: about is the
// message that it was killed for, the others were only its neighbours.
func (e death) of(about mailbox.Ref) func(mailbox.Ref) mailbox.Outcome {
	return func(ref mailbox.Ref) mailbox.Outcome {
		if ref == about {
			return e.task(nil, false)
		}
		return e.lost()
	}
}

// withOutput is what, followed by the last lines of stderr.
func (e death) withOutput(what string) string {
	if last := strings.TrimSpace(e.last); last != "" {
		return what + ": " + last
	}
	return what
}

// kind names how it ended for those who count: why it was ended, or, of one that
// ended by itself, how.
func (e death) kind() string {
	switch {
	case e.cause != byItself:
		return strings.ReplaceAll(e.cause.String(), " ", "_")
	case e.signal != "":
		return "signal"
	case e.code == 0:
		return "exit_zero"
	default:
		return "exit_nonzero"
	}
}
