// Package bolt is the store's engine for one machine: one process, one folder,
// one file of go.etcd.io/bbolt, and a log in front of it.
//
// It answers three questions that a file alone does not. Is a write stored, when
// the disk is full or lies? Is this the newest database, or an older copy that
// somebody put back? How can a commit cost one sync, and many callers share it?
//
//	Update(fn) ─┐   the first who comes leads; who comes while a
//	Update(fn) ─┼─▶ commit runs waits, and the first of those leads
//	Update(fn) ─┘   the next: no goroutine, no timer, no cap
//	                 │
//	                 ▼ each function over an overlay of its own
//	   ┌─ one record of the log: writes · counters · state ┐
//	   └───────────────────────────────────────────────────┘
//	                 │ the mark first, if numbers would pass it
//	                 ▼
//	   mailbox.wal.1|2    mailbox.mark    mailbox.lock
//	                 │ and a table in memory, over mailbox.db
//	                 ▼ a checkpoint, when a log file is full
//	   mailbox.db: a bucket for each space · counters · state record
//
// What it keeps:
//
//   - An Update that returned nil is on disk; an asynchronous one is in the log, and on
//     disk before any other or 10 ms later. One that failed left nothing, or says
//     outcome_unknown, and then the store says nothing else any more.
//   - Tokens and sequence numbers do not repeat: not after a crash, nor when an
//     older mailbox.db is put back. mailbox.mark is synced ahead of them, and a
//     database that is older than it is refused, store_rolled_back.
//   - A full disk refuses what can wait, and lets through what is essential
//     (store.Essential) from a reserve that is kept for it.
//   - Restore and Compact leave the old file or the new one, whenever they are cut
//     off; after a Restore numbers go on in a new epoch, beyond all that were given.
//   - The lock is the kernel's and dies with its holder.
//   - mailbox.db alone is the state after some commit, and names the log that goes on
//     from there; one that does not fit, or has a gap, is refused.
//   - Damage that can be seen is refused, store_corrupt; it does not crash the
//     program. bbolt trusts its file, so what it could not survive is looked for
//     before it sees the file, and its panics and faults are caught.
//
// What it does not: it cannot see that the whole folder was rolled back, nor a
// changed byte inside a value (bbolt keeps no checksums), nor a database and a log that
// were both replaced by older copies of the same run after a crash; in that last case
// numbers still do not repeat. Numbers have gaps after a crash.
//
// key.go draws the layout of the file, record.go that of a record of the log, open.go
// the order in which database, log and mark are written, commit.go what a failed commit
// means, asynchronous.go when what was answered unsynced is synced, log.go when the log
// turns, checkpoint.go how it is moved into the database, replay.go how it is read after a
// crash, index.go and cursor.go how tables lie over the database, age.go when a database is
// too old and what a new epoch is.
package bolt
