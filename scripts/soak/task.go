package main

import (
	_ "embed"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sovereign-run/sovereign/protocol"
)

//go:embed task.sh
var taskScript string

//go:embed worker.sh
var workerScript string

// shell becomes a long-lived worker in sh.
func (l *Life) shell() error {
	return syscall.Exec("/bin/sh", []string{"sh", "-c", workerScript}, append(os.Environ(), "SOAK_LOG="+l.rec.file.Name()))
}

// task writes down the claim with which the task was started, and becomes the
// shell that works on it, with the same process number and locks.
func (l *Life) task() error {
	var start Line
	attempt, err := strconv.Atoi(os.Getenv("SOVEREIGN_ATTEMPT"))
	if err != nil {
		return fmt.Errorf("read the attempt: %w", err)
	}
	token, err := strconv.ParseUint(os.Getenv("SOVEREIGN_CLAIM_TOKEN"), 10, 53)
	if err != nil {
		return fmt.Errorf("read the claim's token: %w", err)
	}
	start.Method, start.Message, start.Attempt = methodStart, os.Getenv("SOVEREIGN_MESSAGE_ID"), attempt
	start.Token, start.Nonce = protocol.Token(token), os.Getenv("SOVEREIGN_SUBJECT")
	l.rec.Call(start)
	b := l.behave(start.Nonce, attempt)
	var sends []string
	list := func(how string, follows []Follow) {
		for _, f := range follows {
			key := f.Key
			if key == "" {
				key = "-"
			}
			sends = append(sends, strings.Join([]string{how, f.To, f.Nonce, key}, " "))
		}
	}
	list("staged", b.Staged)
	list("now", b.Direct)
	env := append(os.Environ(), "SOAK_LOG="+l.rec.file.Name(), "SOAK_SENDS="+strings.Join(sends, "\n"),
		"SOAK_DO="+b.End, fmt.Sprintf("SOAK_WORK=%.3f", float64(b.Work)/float64(time.Second)))
	spawn := ""
	if b.Spawn {
		spawn = "yes"
	}
	env = append(env, "SOAK_SPAWN="+spawn)
	return syscall.Exec("/bin/sh", []string{"sh", "-c", taskScript}, env)
}
