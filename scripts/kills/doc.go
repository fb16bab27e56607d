// Command kills kills a supervisor with SIGKILL at random moments, again and again,
// and looks whether anything of an earlier one lives beside what its successor starts.
//
//	go run ./scripts/kills -n 200 -seed 7
//
// The fleet is a task, a worker and a daemon with two slots each. Each life of a
// slot starts a tree that is three processes deep and hides: parts have left the
// session, lost their parent, ignore SIGTERM, or stand still by SIGSTOP. Lives end by
// themselves too, after a time that the seed decides, and leave that tree behind.
//
// Every second supervisor is killed at a moment after it was ready, every other one
// while it starts, which is while it ends what the one before has left.
//
// Two things are evidence, and neither is bookkeeping of the supervisor. Each life
// takes a lock for its slot and one for its supervisor, which its whole tree inherits
// and which end with the last process of it: who finds its slot taken, or an earlier
// supervisor's lock held, writes that down. And whenever a supervisor is ready, and at
// the end, /proc is read for processes that an earlier one has started.
//
// The exit status is 1 where something was left or overlapped; the folder is kept
// then. It needs Linux: elsewhere leftovers are not ended, as docs/operating.md says.
package main
