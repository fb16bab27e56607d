package lazyfs

import (
	"fmt"
	"syscall"
)

// fault is what is to go wrong, and the count that leads to it. Counts begin with 1
// when the fault is asked for. 0 is never.
type fault struct {
	cut  int // the power goes at this operation
	full int // the disk is full from this write on
	eio  int // this sync fails
	lost bool

	ops, writes, syncs int

	off   bool  // the power is gone
	fired bool  // one of the above has happened
	room  int64 // bytes that were given back since the disk was full
}

// parse reads "cut N", "full N", "eio N lost" and "eio N stored".
func parseFault(s string) (f fault, err error) {
	var kind, how string
	var n int
	if _, err := fmt.Sscan(s, &kind, &n); err != nil {
		return f, err
	}
	switch kind {
	case "cut":
		f.cut = n
	case "full":
		f.full = n
	case "eio":
		f.eio = n
		if _, err := fmt.Sscan(s, &kind, &n, &how); err != nil {
			return f, err
		}
		f.lost = how == "lost"
	default:
		return f, fmt.Errorf("unknown fault %q", s)
	}
	return f, nil
}

// step counts one operation that changes or syncs something.
func (f *fault) step() syscall.Errno {
	f.ops++
	if f.cut != 0 && f.ops >= f.cut {
		f.off, f.fired = true, true
	}
	if f.off {
		return syscall.EIO
	}
	return 0
}

// take counts an operation that writes something and needs so much more room on the
// disk. What has a place there already can be overwritten on a full disk.
func (f *fault) take(bytes int64) syscall.Errno {
	if e := f.step(); e != 0 {
		return e
	}
	if bytes == 0 {
		return 0
	}
	f.writes++
	if f.full == 0 || f.writes < f.full {
		return 0
	}
	f.fired = true
	if bytes > f.room {
		return syscall.ENOSPC
	}
	f.room -= bytes
	return 0
}

// give counts what a file that got shorter gave back to a full disk.
func (f *fault) give(bytes int64) {
	if f.full != 0 && f.writes >= f.full {
		f.room += bytes
	}
}

// sync counts a sync, and reports whether it fails.
func (f *fault) sync() (fails bool, e syscall.Errno) {
	if e := f.step(); e != 0 {
		return false, e
	}
	f.syncs++
	if f.eio != 0 && f.syncs == f.eio {
		f.fired = true
		return true, 0
	}
	return false, 0
}
