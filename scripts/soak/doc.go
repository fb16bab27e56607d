// Command soak drives one supervisor with real workers, breaks both at random
// points for as long as asked, and checks what all of them were told.
//
//	go run ./scripts/soak -for 30s -seed 7
//
// It builds the program, starts `sovereign run` on a store in a temporary folder,
// and sends messages to tasks written in sh and to long-lived workers, which are
// this program again: over descriptor 3 and over worker.sock. Meanwhile it kills,
// stops and continues workers and the supervisor, ends the supervisor in order and
// starts it again, and cancels, retries, drops, pauses and resumes as an operator.
// At the end nothing is broken any more, everything must drain, and the store is
// read.
//
// Every request and every answer is a line in a log, written before the request is
// made and after the answer has come (record.go). The checks (check.go,
// model.go) are pure functions of these lines and of what is in the store:
//
//   - no message whose send was answered is lost, and none is there that nobody sent;
//   - each message has one outcome, and each start one receipt;
//   - tokens rise for each message and for each slot, and none is given twice;
//   - no settle is accepted under a superseded token: the history of each message is
//     one that a single copy of it could have had (porcupine);
//   - what an attempt staged is visible if and only if that attempt completed;
//   - a key names one message;
//   - two lives of one slot never overlap, and nothing that a dead supervisor started
//     is alive when its successor starts something: each life holds locks that
//     end with the last process of its tree (locks_linux.go).
//
// What the driver and the workers decide follows from the seed alone (plan.go,
// behave.go); when it happens, the machine decides. The exit status is 1 where a
// check fails, and the folder is kept then, with the seed and the histories in it.
package main
