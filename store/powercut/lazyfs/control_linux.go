package lazyfs

import "golang.org/x/sys/unix"

// The control of a file system that is mounted is an attribute of its topmost
// folder, so that the program that uses it can tell it things, in order with what
// it does there.
const attribute = "user.lazyfs"

// Tell asks the file system mounted on dir for something:
//
//	note TEXT         the log holds TEXT from now on
//	cut N             the power goes at the N-th operation from now
//	full N            the disk is full from the N-th write from now that needs room
//	eio N lost        the N-th sync from now fails, and what it was to sync is lost
//	eio N stored      it fails although all is stored
//	clear             nothing goes wrong any more
func Tell(dir, what string) error { return unix.Setxattr(dir, attribute, []byte(what), 0) }

// Fired reports whether what was asked for has gone wrong since.
func Fired(dir string) (bool, error) {
	b := make([]byte, 8)
	n, err := unix.Getxattr(dir, attribute, b)
	return err == nil && string(b[:n]) == "fired", err
}
