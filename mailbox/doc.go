// Package mailbox answers: which messages wait, are claimed, have ended?
//
// A message is addressed to an actor and durable once Send has returned. Its
// state lies in one record, and that record decides:
//
//	 send            claim              complete
//	──────► NEW ──────────────► CLAIMED ─────────► DONE
//	         ▲                    │
//	         │ fail, release,     │ max_attempts, dead      policy park
//	         │ lost, expired      ├──────────────► DEAD     ┌─► PARKED
//	         └────────────────────┴─────────────────────────┘
//	         ▲                          retry by a person        │
//	         └───────────────────────────────────────────────────┘
//
// A claim is a lease on a message, granted by a compare-and-set on its record
// and fenced by a token of its own. Every write of a worker, the small ones too,
// is checked in the transaction that writes: the lease of its process, then the
// token of its claim (currentTx). Whoever ends an attempt, the worker, a task's
// exit, the sweep, recovery or a person, does it through one function (endTx),
// which writes receipt, state, result, follow-up messages, counts and event
// together. What is sent within a claim is staged: on disk, its place reserved,
// invisible until that claim completes.
//
// The index (who waits, until when, who holds what) is a fold over committed
// changes, in memory: Load reads the claims, and claims the rest, a block at a time
// (unread.go). It is a hint: the
// claim re-reads its one record.
//
// It promises one winner among contenders and one canonical outcome for each
// attempt (docs/contract.md, P2, P3, P8). It does not promise that work happens
// once: delivery is at least once, or at most once for actors that park.
//
// The keys lie in key.go and in docs/storage.md; nothing else touches them.
package mailbox
