// Package metrics answers: what can a monitoring system read of a supervisor?
//
// It is a collector for the client library of Prometheus: what the parts of a
// supervisor count of themselves (mailbox.Tally, supervisor.Tally, server.Answered)
// and what they are at the moment (status, inboxes, the store) become metrics when
// they are asked for, and cost nothing between. The parts know nothing of it.
//
//	mailbox, supervisor, server, store ──counts──► Source ──► Registry ──► text
//	                                                           │
//	                           sovereign metrics, run --metrics ┘
//
// Names follow the conventions of Prometheus: sovereign_ in front, base units,
// _total for what only grows; docs/operating.md lists them, and a test compares. A
// counter starts at 0 with the supervisor. Labels carry names of actors, states,
// causes, methods and categories: never an identity, a token, an id or a body, and
// nothing that a peer can make up.
//
// On a stopped store only what is on record is told: the inboxes.
package metrics
