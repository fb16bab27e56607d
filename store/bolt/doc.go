// Package bolt is the store's engine for one machine: one process, one folder,
// one file of go.etcd.io/bbolt.
//
// It answers three questions that a file alone does not. Is a write stored, when
// the disk is full or lies? Is this the newest database, or an older copy that
// somebody put back? How can many callers share the two syncs of one commit?
//
//	Update(fn) ─┐   the first who comes leads; who comes while a
//	Update(fn) ─┼─▶ commit runs waits, and the first of those leads
//	Update(fn) ─┘   the next: no goroutine, no timer, no cap
//	                 │
//	                 ▼ each function over an overlay of its own
//	   ┌─ one bbolt transaction ──────────────────────────┐
//	   │ a bucket for each space · counters · state record │
//	   └──────────────────────────────────────────────────┘
//	                 │ the mark first, if numbers would pass it
//	                 ▼
//	   mailbox.db    mailbox.mark    mailbox.lock
//
// What it keeps:
//
//   - An Update that returned nil is on disk. One that failed left nothing, or
//     says outcome_unknown, and then the store says nothing else any more.
//   - Tokens and sequence numbers do not repeat: not after a crash, nor when an
//     older mailbox.db is put back. mailbox.mark is synced ahead of them, and a
//     database that is older than it is refused, store_rolled_back.
//   - A full disk refuses what can wait, and lets through what is essential
//     (store.Essential) from a reserve that is kept for it.
//   - Restore and Compact leave the old file or the new one, whenever they are cut
//     off; after a Restore numbers go on in a new epoch, beyond all that were given.
//   - The lock is the kernel's and dies with its holder.
//   - Damage that can be seen is refused, store_corrupt; it does not crash the
//     program. bbolt trusts its file, so what it could not survive is looked for
//     before it sees the file, and its panics and faults are caught.
//
// What it does not: it cannot see that the whole folder was rolled back, nor a
// changed byte inside a value (bbolt keeps no checksums), nor a database that was
// replaced by an older copy of the same run after a crash; in that last case
// numbers still do not repeat. Numbers have gaps after a crash.
//
// key.go draws the layout of the file, open.go the order in which database and
// mark are written, commit.go what a failed commit means, age.go when a database is too
// old and what a new epoch is.
package bolt
