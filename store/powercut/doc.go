// Package powercut holds the tests that take the power, the room and the syncs
// away from a store (docs/contract.md, P2.4, P4.10, P7). It has no code of its own.
//
// One scripted workload makes every kind of transaction that the mailbox knows, on
// a file system that forgets what was not synced (lazyfs), in a process of its own.
// Then
//
//   - the power is cut before and after every write and sync of it, with none, all
//     and any subset of the sectors that were not synced kept, and what is left is
//     opened, verified, recovered, and compared: with the exact content that the
//     store had after each transaction, and with a model of the mailbox;
//   - each of its syncs fails, both as "not stored" and as "stored";
//   - the disk is full at each of its writes.
//
// On an ext4 whose journal is shut down under it, the same is done with the files
// that are replaced whole: there names and contents become durable in the order
// that a real file system gives them.
//
// With POWERCUT_EVERY in the environment more of it is done, which takes minutes;
// with -short or -race less.
//
// Mounting needs Linux and root; elsewhere the tests say so and skip.
package powercut
