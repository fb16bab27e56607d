// Sovereign supervises local processes that work on durable messages.
//
// This package is the command line: it turns what an operator or a shell worker
// typed into one request, and joins the parts of a supervisor for `run`. It
// knows flags, exit statuses and how things look on a terminal; it knows no
// rule of the domain.
//
//	main ──► run ──► root.go: the tree of commands, one file each
//	                   │
//	                   ├─ locate.go   which store, and as whom
//	                   ├─ client.go   one request: over the socket, or on the opened store
//	                   ├─ serve.go    the parts of a supervisor, built once and in order
//	                   ├─ table.go    what fits a terminal
//	                   └─ exit.go     from an error to an exit status, and to words
//
// Every command that asks something of a store is one request with one
// implementation, the control handler of package server. Where a supervisor
// runs, the request travels over its control.sock; where none does, the command
// takes the store's lock and calls the same handler in its own process. A
// process that carries an identity (SOVEREIGN_PROCESS) never takes that second
// way: no path around the running supervisor exists for it (P8).
//
// Exit statuses are 0 done, 1 failed, 2 usage or configuration, 3 refused, 4
// nothing there; docs/cli.md lists which category ends in which.
package main
