// Bench measures the product as it is used, beside what else does the same work on
// one machine: scripts/bench/run builds the program and runs everything, bounded,
// on unix sockets and loopback only, in a temporary folder on the disk.
//
//	trips       durable send, claim, complete: in process and through the sockets,
//	            with 1 client and with 64 senders and 64 workers, beside Redis
//	            (appendfsync always), beanstalkd (-f0), NATS JetStream (sync_interval
//	            always) and PostgreSQL (fsync and synchronous_commit on)
//	redelivery  from a child's SIGKILL to its message running again
//	idle        memory, threads and CPU of a supervisor with 1, 100 and 1000 idle
//	            actors; the time to start and stop them all, and to restart one
//	supervisors the same children under this supervisor, supervisord, runit and s6
//	logs        1 GB of a child's lines until they are in files, beside the child writing
//	            the file itself, supervisord, svlogd and s6-log
//	tasks       one /bin/true a message, beside a bare loop of start and wait
//	cost        system calls of the supervisor for each message, by strace
//	large       what grows with 100,000 and 1,000,000 waiting messages: the start
//	            after a SIGKILL, verify, looking at the inbox, backup beside traffic
//	backlog     a million waiting messages: how long they take to send, their bytes on
//	            disk and in memory, the first claim after a SIGKILL, the drain, and
//	            redelivery among them, beside the same four
//	clients     rate, sends and the supervisor's CPU with 1, 8, 64, 256 and 1000 clients
//	bodies      the same with bodies of 100 bytes to 1 MiB, 8 senders and 8 workers
//	recipients  64 + 64 clients of one actor and of 64, each with one worker: the ratio
//	latency     one client's sends beside 64 workers that run flat out; renewals each 10 ms
//	            beside a bulk of 100,000 in batches, as many single sends, and bodies so
//	            large that the store checkpoints without a pause
//	growth      64 + 64 clients while 0, 100,000 and 1,000,000 (-huge: 10,000,000)
//	            messages wait of another actor, and of the same one
//
// A worker of clients and recipients is a child of its own, which lends its identity to a
// connection of this program. A renewal of latency is timed from when it was due, and those
// that were due while one took long count as well, with what was left of the wait: one
// slow answer is not one slow figure, but as many as a worker had a chance to meet.
//
// The others come from Debian (apt-get install redis-server beanstalkd postgresql
// supervisor runit s6), but for the server of NATS, which scripts/bench/run builds from its
// Go module: Debian's refuses to sync always. Who is missing is left out, with a word. Each
// answer of theirs to a send and to a completion is synced; that to a claim is with Redis and
// PostgreSQL. Their clients are written by hand, for what a library adds (pools,
// subscriptions, types) is not what is measured, ours has none of it either, and the go.mod
// of the product stays as it is.
//
// Rounds of all systems take turns, and each figure is a median with the lowest and the
// highest: on a busy machine compare within one table only.
package main
