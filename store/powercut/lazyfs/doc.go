// Package lazyfs is a file system that forgets what was not synced: a power cut
// that a test can have at any moment it likes. It is for tests on Linux only.
//
// Everything that is asked of it is kept in memory. What a program wrote to a file
// is durable once that file was synced, and the creation, renaming and removal of
// a name once its folder was: no file system that we know promises more, and some
// promise no more.
//
//	program ── kernel ── FUSE ──> Serve ── Op ──> Disk ── Cut(keep) ──> Image
//
// A Disk is what one log of operations would have left on a disk. Its Cut says
// what is there after the power went: of all that was not synced nothing,
// everything, or any subset, in sectors of 512 bytes. Since a log can be replayed
// up to each of its operations, one run of a program gives all its cuts.
//
// While it serves it can also cut the power, find the disk full, or fail a sync,
// at an operation that is counted from when it was asked for. After a failed sync
// the kernel goes on showing what the disk has lost, as it does on ext4 and xfs.
//
// The server must be another process than the one that uses the files: a page
// fault on a mapped file blocks a thread of the runtime that the server needs.
package lazyfs
