package process

import (
	"fmt"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// A spawner is the one OS thread that makes children. The kernel sends a
// parent-death signal when the thread that forked ends, not the process
// (golang/go#27505), so it must be locked and must never end while a child lives.
// It has a working directory and a umask of its own, and an empty signal mask,
// which children inherit.
type spawner struct {
	umask int // what the program was started with
	work  chan func()
	wg    sync.WaitGroup
}

func newSpawner() (*spawner, error) {
	s := &spawner{work: make(chan func())}
	ready := make(chan error)
	s.wg.Go(func() { s.lock(ready) })
	if err := <-ready; err != nil {
		return nil, err
	}
	return s, nil
}

// lock finds a thread that is not the main one. Orphans are adopted by the main
// thread, and its umask and directory are what /proc shows for the process.
func (s *spawner) lock(ready chan<- error) {
	runtime.LockOSThread() // never unlocked: on return the thread ends
	if unix.Gettid() != unix.Getpid() {
		s.run(ready)
		return
	}
	// As long as this goroutine holds the main thread, the next gets another.
	other := make(chan error)
	s.wg.Go(func() { s.lock(other) })
	err := <-other
	runtime.UnlockOSThread()
	ready <- err
}

func (s *spawner) run(ready chan<- error) {
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		ready <- fmt.Errorf("give the spawner thread a umask of its own: %w", err)
		return
	}
	s.umask = unix.Umask(0)
	unix.Umask(s.umask)
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &unix.Sigset_t{}, nil); err != nil {
		ready <- fmt.Errorf("clear the signal mask of the spawner thread: %w", err)
		return
	}
	ready <- nil
	for f := range s.work {
		f()
	}
}

// stop ends the thread; a child that still lives is killed by that.
func (s *spawner) stop() {
	close(s.work)
	s.wg.Wait()
}
