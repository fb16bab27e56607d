// Bench measures the product as it is used, beside what else does the same work on
// one machine: scripts/bench/run builds the program and runs everything, bounded,
// on unix sockets only, in a temporary folder on the disk.
//
//	trips       durable send, claim, complete: in process and through the sockets,
//	            with 1 client and with 64 senders and 64 workers, beside Redis
//	            (appendfsync always) and beanstalkd (-f0)
//	redelivery  from a child's SIGKILL to its message running again
//	idle        memory, threads and CPU of a supervisor with 1, 100 and 1000 idle
//	            actors; the time to start and stop them all, and to restart one
//	supervisors the same children under this supervisor, supervisord, runit and s6
//	logs        1 GB of a child's lines until they are in files, beside the child writing
//	            the file itself, supervisord, svlogd and s6-log
//	tasks       one /bin/true a message, beside a bare loop of start and wait
//	cost        system calls of the supervisor for each message, by strace
//	large       what grows with 100,000 and 1,000,000 waiting messages: the start
//	            after a SIGKILL, verify, backup beside traffic
//	backlog     a million waiting messages: how long they take to send, their bytes on
//	            disk and in memory, the first claim after a SIGKILL, the drain, and
//	            redelivery among them, beside Redis and beanstalkd
//
// The others come from Debian (apt-get install redis-server beanstalkd supervisor
// runit s6) and are left out, with a word, where they are not installed. Rounds of all
// systems take turns, and each figure is a median with the lowest and the highest:
// on a busy machine compare within one table only.
package main
