package main

import (
	"errors"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

// keepBare is the floor of part supervisors: it keeps n children and does nothing else. It
// forks, waits, and forks again; what they write it does not see, what they leave it does
// not end, and what it has done it does not record. SIGTERM ends the children, and then it.
func keepBare(n int, child string) error {
	start := func() (int, error) {
		return syscall.ForkExec(child, []string{child}, &syscall.ProcAttr{Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setsid: true}})
	}
	var stopping atomic.Bool
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	children := make([]atomic.Int64, n)
	go func() {
		<-stop
		stopping.Store(true)
		for i := range children {
			_ = syscall.Kill(int(children[i].Load()), syscall.SIGTERM)
		}
	}()
	slots := map[int]int{}
	for i := range n {
		pid, err := start()
		if err != nil {
			return err
		}
		children[i].Store(int64(pid))
		slots[pid] = i
	}
	for {
		var status syscall.WaitStatus
		ended, err := syscall.Wait4(-1, &status, 0, nil)
		if errors.Is(err, syscall.ECHILD) {
			return nil
		}
		if errors.Is(err, syscall.EINTR) || stopping.Load() {
			continue
		}
		if err != nil {
			return err
		}
		pid, err := start()
		if err != nil {
			return err
		}
		slots[pid] = slots[ended]
		children[slots[pid]].Store(int64(pid))
		delete(slots, ended)
	}
}
