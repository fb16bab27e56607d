package process

// A Thread is the main thread of a program that was put in place by [Host.Exec]: the
// children that it inherits are bound to that one, so it must make all further
// children, and must be the one that executes the next program.
//
// The program's init calls runtime.LockOSThread, and its main lends the thread by
// Serve, while everything else runs on other goroutines.
type Thread struct{ work chan func() }

// NewThread returns a thread that nobody serves yet.
func NewThread() *Thread { return &Thread{work: make(chan func())} }

// Serve does on the calling thread what it is lent for. It never returns.
func (t *Thread) Serve() {
	for f := range t.work {
		f()
	}
}

// Exec is [Host.Exec] for a program that has not come to making its Host.
func (t *Thread) Exec(path string, argv, env []string, keep []uintptr) error {
	done := make(chan error)
	t.work <- func() { done <- execHere(path, argv, env, keep) }
	return <-done
}
