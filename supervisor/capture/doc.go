// Package capture keeps what children write.
//
// A child's stdout and stderr are pipes. What comes out of them goes, byte for
// byte, to the slot's file logs/ACTOR.SLOT.log, and line by line to the console.
// A child is never held up for long by what becomes of its output: not by a full
// or slow disk, not by a stuck terminal. What cannot be kept is counted.
//
//	child ──pipe──► Log ──queue──► ACTOR.SLOT.log, .log.1 … .log.KEEP
//	                 │                    ACTOR.SLOT.log.idx  when, which stream, which process
//	                 ├──lossy────────────► console, "actor.slot | line"
//	                 └──tee──────────────► Tail (last lines, for reasons), Result (a task's stdout)
//
// # The files
//
// The log file holds the children's bytes, so that every tool reads it, and
// nothing else but the note of a loss. When, from which stream and from which process a line came is in a
// second file beside it, ACTOR.SLOT.log.idx: one text line for each run of bytes
// that came from one stream of one process at one time,
//
//	OFFSET LENGTH UNIX-NANOSECONDS o|e|s PROCESS[ p]
//
// where s is the supervisor's own note, and p says that the run ends in the
// middle of a line. An escaped or framed
// log would have put this in the file itself, and would have broken grep, tail -f
// and every log shipper. The index is a hint: it is written after the bytes it
// describes, it may be lost or deleted, and bytes that it does not cover are shown
// without time and stream.
//
// A run ends at a line's end wherever possible, so that lines of stdout and
// stderr do not mix; a line that is not ended within 200 ms, or grows beyond 64
// KiB, is written in parts. The last line of a process needs no newline, and gets
// none.
//
// # Bounds
//
// A child is blocked by its own output for at most [MaxBlock] before bytes are
// dropped, and while the disk goes on failing or hanging not at all. A Log holds
// at most 1 MiB in memory, an idle pipe no buffer and no thread. Loss is counted in
// [Log.Lost], and a line in the file says how much was lost where.
//
// # A power cut
//
// Output is not synced line by line: the current file is written out when the kernel
// does, and so a power cut may take its end. A file that is rotated away is synced,
// with its index and its name, and the next rotation waits for that. So a cut costs
// at most the current file and the one before it; everything older is there, with its
// times, and the log goes on.
//
// Reading back, [Last] and [Follow], works on the files alone, with or without a
// supervisor. Where rotated files were removed from the middle a line of their own
// says so, and the others are read.
package capture
