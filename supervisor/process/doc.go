// Package process starts one child process, sees it end, and ends all that it
// started.
//
// A [Host] is the operating system's side of a supervisor. It owns one OS thread
// that makes every child, for the parent-death signal is bound to the thread
// that forked (golang/go#27505), with few descriptors of its own, so that a start
// costs the same whatever the program has open; and one goroutine that reaps. A [Process] is
// one child with its tree: every process that descends from it.
//
//	Start ──► fork+exec on the spawner thread ──► registered ──► running
//	                                                               │ SIGCHLD
//	            Exited() is closed, Exit() says how ◄── reaped ◄───┘
//	KillTree, WaitTree ──► nothing of the tree is left
//
// What holds on Linux:
//   - An exit is seen at once, whoever still holds the child's pipes.
//   - Every child leads a session of its own: a terminal's Ctrl-C reaches only
//     the supervisor. Descriptors 0 to 2, and 3 where given, are all it gets;
//     its signal mask is empty and its signal dispositions are the defaults.
//   - The tree is a leaf of cgroup v2 where the supervisor's own cgroup is
//     writable; else it is found by descent (the Host makes the program a child
//     subreaper, so that orphans come to it), by session, and by the variable
//     SOVEREIGN_PROCESS in the environment.
//   - A child is killed by the kernel when the supervisor dies. Its descendants
//     are not; the next supervisor ends them: [Host.EndLeftover], [Host.EndMarked].
//   - Another program can take this one's place and keep the children: [Host.Exec],
//     [Inherit].
//   - No process is ever signalled by its number alone. A number is pinned by a
//     pidfd, or by being our own unreaped child, and compared with what was
//     recorded, before a signal is sent.
//
// What does not hold: without cgroups, a descendant that left the session,
// wiped its environment and lost its parents cannot be told from another
// child's; it lives until [Host.Close]. One that another service started on
// request (systemd-run, a container engine) is out of sight altogether. On
// systems other than Linux the tree is the process group, and leftovers of a
// dead supervisor are never killed, because nothing there proves who they are.
//
// The package knows nothing of actors, leases or restarts.
package process
