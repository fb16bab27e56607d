// Package supervisor answers: which actors run, and what happens next when one
// stops?
//
// Each replica of an actor is a slot, owned by one goroutine, whose life is a
// table (life.go, docs/states.md): for each state and event, where it goes and
// what is done on the way. What comes after an end (restart.go), how long to wait
// (backoff.go), when to give up (intensity.go) and what an end means for a
// message (outcome.go) are functions of values; the rest does what they say.
//
//	         ┌─► waiting ─► idle ─► spawning ─► starting ─► up ──┐
//	start ───┘ for `after`  for work  lease,      ready?         │ exit, stop,
//	                                  claim,                     │ timeout
//	stopped, failed, exited           process                    ▼
//	         ▲                                        stopping ─► ending
//	         └──────────── backoff ◄────────────────────────────┘
//
// What holds:
//   - A slot has at most one process, and no successor starts before nothing of
//     its tree is left (C1, F11). What cannot be killed leaves the slot stuck.
//   - A process is started after its lease, and in task mode its claim, are
//     durable, and its end is one transaction after its tree is gone, whether it
//     ended by itself, by a stop, or in the death of a supervisor, which the next
//     one finds on record (P4).
//   - Before that transaction its message is not handed out again (P4.5), and its
//     workspace not reclaimed (P4.6).
//   - What was wished last wins, over timers and starts under way; `stopped` is
//     durable (F9).
//   - An idle slot has no timer, and nothing is polled but a process that is
//     becoming ready by exec, tcp or http. Deadlines of children are
//     instants of the lease clock, which stands still while the supervisor does
//     not run (P9).
//   - All of it can be handed to another program in the same process while the children
//     go on (Hold, HandOver; Options.Handed).
//
// It does not promise that two processes never run at one time: what hides from
// the supervisor is fenced, not found (P0).
package supervisor
