// Package interrupt answers: which signals that stop a program have come, from its first
// moment on?
//
// A program that is put in another one's place inherits its process, and with that
// whoever stops it. What Go's runtime has not been told to catch ends the process at
// once, and the children with it. So the signals are caught while the packages of the
// program are initialized: this one needs little, and so it comes early, before those
// of the other packages that take their time. A signal that comes before even that,
// while the runtime begins, cannot be caught.
//
//	exec ──► runtime ──► interrupt ──► … all other packages … ──► main ──► who acts on it
//
// It knows nothing of what a signal means, and acts on none.
//
// The package depends on nothing of this module, and everything may use it.
package interrupt
