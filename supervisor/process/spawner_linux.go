package process

import (
	"context"
	"errors"
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
//
// It has a descriptor table of its own, too, see handover: a child starts with a copy
// of its parent's, and closes in its exec what it must not have, which would make each
// start as dear as there are descriptors open. What runs on the thread uses only bare
// system calls, and no number of a descriptor that it was not given.
type spawner struct {
	umask int // what the program was started with
	given *handover
	turn  chan struct{} // holds one: whoever has taken it may give descriptors and work
	work  chan func()
	wg    sync.WaitGroup
	lent  bool // it is the program's main thread, which goes on
}

// newSpawner takes a thread that is not the main one, or else the one that is given. That
// one keeps the program's table of descriptors, which is the one that /proc/self shows.
func newSpawner(main *Thread) (*spawner, error) {
	s := &spawner{work: make(chan func()), turn: make(chan struct{}, 1)}
	s.turn <- struct{}{}
	var err error
	if s.given, err = newHandover(); err != nil {
		return nil, err
	}
	if main != nil {
		s.work, s.lent = main.work, true
		ready := make(chan error, 1)
		s.work <- func() {
			if s.prepare(ready) {
				ready <- nil
			}
		}
		if err := <-ready; err != nil {
			s.given.close()
			return nil, err
		}
		return s, nil
	}
	ready := make(chan error)
	s.wg.Go(func() { s.lock(ready) })
	if err := <-ready; err != nil {
		s.given.close()
		return nil, err
	}
	return s, nil
}

// do runs f on the thread, with the thread's numbers of the program's descriptors fds,
// which are closed afterwards, and returns when it has. Its error is ctx's, where that
// ended before f's turn had come, or that of handing over, and then f was not run.
func (s *spawner) do(ctx context.Context, fds []int, f func(fds []int)) error {
	select {
	case <-s.turn:
	case <-ctx.Done():
		return ctx.Err()
	}
	done := make(chan error)
	sent, notSent := s.given.send(fds)
	s.work <- func() {
		got, err := s.given.receive(sent)
		if err = errors.Join(notSent, err); err == nil {
			f(got)
		}
		for _, fd := range got {
			unix.Close(fd)
		}
		done <- err
	}
	s.turn <- struct{}{} // in the order of the messages comes the work
	return <-done
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
	if !s.prepare(ready) {
		return
	}
	if err := s.given.part(); err != nil {
		ready <- err
		return
	}
	ready <- nil
	for f := range s.work {
		f()
	}
}

// prepare reports whether the thread, on which it runs, can make children; ready gets
// why not.
func (s *spawner) prepare(ready chan<- error) bool {
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		ready <- fmt.Errorf("give the spawner thread a umask of its own: %w", err)
		return false
	}
	s.umask = unix.Umask(0)
	unix.Umask(s.umask)
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &unix.Sigset_t{}, nil); err != nil {
		ready <- fmt.Errorf("clear the signal mask of the spawner thread: %w", err)
		return false
	}
	return true
}

// stop ends the thread; a child that still lives is killed by that.
func (s *spawner) stop() {
	if s.lent {
		s.given.close()
		return
	}
	close(s.work)
	s.wg.Wait()
	s.given.close()
}
