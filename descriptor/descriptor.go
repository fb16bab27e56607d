package descriptor

import "syscall"

// None is the number of what has no descriptor (any more): -1, to the system.
const None = ^uintptr(0)

// Of returns the number of the descriptor of c, a file, a connection or a listener; None
// where it is closed, or has none. It stays c's: whoever uses the number sees to it that c
// is not closed meanwhile.
func Of(c any) uintptr {
	fd := None
	if c, ok := c.(syscall.Conn); ok {
		if raw, err := c.SyscallConn(); err == nil {
			_ = raw.Control(func(n uintptr) { fd = n })
		}
	}
	return fd
}
