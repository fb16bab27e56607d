package process

import (
	"bytes"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
)

// unignore makes a handler that does nothing of every signal that is ignored
// (SIGHUP under nohup, others from a careless parent), for a child inherits
// "ignored" through exec, but gets the default for a handler. It returns them.
func unignore() ([]os.Signal, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return nil, err
	}
	_, rest, ok := bytes.Cut(status, []byte("\nSigIgn:\t"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	if !ok {
		return nil, fmt.Errorf("no SigIgn in /proc/self/status")
	}
	mask, err := strconv.ParseUint(string(line), 16, 64)
	if err != nil {
		return nil, err
	}
	var ignored []os.Signal
	for n := 1; n <= 64; n++ {
		if mask&(1<<(n-1)) != 0 {
			ignored = append(ignored, syscall.Signal(n))
		}
	}
	handle(ignored)
	return ignored, nil
}

// handle lets signals come and does nothing about them. A channel without
// reader drops what it is sent once its buffer is full.
func handle(sigs []os.Signal) {
	if len(sigs) > 0 { // Notify without signals means all of them
		signal.Notify(make(chan os.Signal, 1), sigs...)
	}
}

// ignore is how they were before unignore.
func ignore(sigs []os.Signal) {
	if len(sigs) > 0 {
		signal.Ignore(sigs...)
	}
}
