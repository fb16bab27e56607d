// Package conformance answers: does this supervisor keep the rules of the worker
// protocol, as far as they can be seen from outside?
//
// It knows a System only by its sockets: workers' (worker.sock, and the channel
// of each worker), and people's (control.sock). What it asks there, and what must
// be answered, is a list of rules, each named by its number in docs/contract.md:
//
//	Rules() ──► Judge(ctx, System) ──► []Finding{P3.6, "…", ok or why not}
//
// The workers are real processes that the judged supervisor started, and that
// hand their channel to the judge (Relay): their identities are real, and the
// judge may kill them. Rules do not depend on each other; each leaves the mailbox
// as it found it.
//
// What it does not say: that a supervisor keeps the contract. What is durable,
// what a crash leaves and what two transactions see of each other cannot be seen
// in answers. It finds engines that answer wrongly.
package conformance
