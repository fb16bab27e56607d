// Package descriptor answers: under which number does the system know this file, this
// connection or this listener?
//
// A program that takes this one's place, and a child, inherit descriptors under their
// numbers. Asking is without effect: the method Fd of package os makes a file block, and
// that of a listener's File is a duplicate, which has another number.
//
//	file, connection, listener ──► Of ──► number ──► the next program, or a child
//
// It knows nothing of what the descriptors are for, and closes none.
//
// The package depends on nothing of this module, and everything may use it.
package descriptor
