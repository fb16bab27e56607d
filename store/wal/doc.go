// Package wal keeps a log file: records that are appended and synced one after
// another, and read back after a crash. What is in a record is its user's
// business; store/bolt puts the commits of a store there.
//
// A file is used again and again, from its beginning, without being emptied: to
// write where the file has blocks already is the cheapest thing that can be made
// durable, one write and one sync that changes nothing but data. So behind the
// newest record lie older ones. What keeps them apart is the salt, a number that
// is new at each use and part of every record's checksum:
//
//	┌ head ─────────┬ record ───────┬ record ───────┬ older use ───
//	│ salt, number  │ salt, number  │ salt, number  │ another salt
//	└───────────────┴───────────────┴───────────────┴──────────────
//
// The first record is the head, which says how the use began. It is synced before
// anything is appended, so that a record without a head is damage.
//
// What is appended is durable when Append returns nil. Where all is, only the last
// record can be half there after a crash: the next one is not begun before its sync is
// over. So a record that cannot be read is the end of the log, and nothing was
// confirmed behind it; but if there is a readable record of the same use further
// on, it is damage (Content.Beyond tells). Records that were appended unsynced become
// durable with the next sync, all of them and in any order: each record says how many
// unsynced ones it follows, so that a power cut among these is not taken for damage. A record
// also says how long the file was known to be, since what is cut off its end by other
// means would look like that end.
//
// That a power cut takes nothing from the record before, which shares a sector
// with the next, rests on what disks promise: a sector that is overwritten with
// the same bytes in front has those bytes.
package wal
