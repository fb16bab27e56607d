// Package fence answers: who may act for an actor, under which number?
//
// A slot is hosted by at most one process at a time, the holder of its lease. A
// process is named by a random identity, never by a PID, and a lease by a token
// that is greater than every token minted before for that slot. Whatever a
// worker writes carries both, and is checked in the transaction that writes:
//
//	Acquire ──► lease{process, token, expiry} ──► CheckTx in every write
//	   │ expired: a greater token                    │ not the current one:
//	   ▼                                             ▼ refused, for good
//	the old holder, if it lives on, can do nothing more
//
// It promises that of N who acquire at once one wins, that tokens grow and are
// never minted again, that a stale holder's renewals and releases change
// nothing, and that a damaged record grants nothing (docs/contract.md, P1).
//
// It does not promise that only one process runs: fencing is no sandbox. An old
// holder can still compute and write elsewhere; what it sends here is refused.
//
// Time is the lease clock's, which no wall-clock step moves. A supervisor that
// looks after a living process keeps its lease (Keep): it does not expire, and
// nothing is written to renew it, since the store's lock proves that the keeper
// lives, and a restart recovers every lease anyway.
//
// The package owns the keys under Space; store decides what is durable.
package fence
