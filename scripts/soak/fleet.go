package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The modes of an actor of the fleet.
const (
	modeTask    = "task"    // a child for each message, in sh
	modeChannel = "channel" // long-lived, over descriptor 3
	modeSocket  = "socket"  // long-lived, over worker.sock
	modeShell   = "shell"   // long-lived, in sh with the program's own verbs
)

// What is passed to lives by way of the supervisor's environment.
const (
	envFolder     = "SOAK_FOLDER"
	envGeneration = "SOAK_GENERATION"
	envSeed       = "SOAK_SEED"
	envBinary     = "SOAK_BINARY"
	envCalm       = "SOAK_CALM"
)

// lifeArgument is the first argument of this program where it is a process of the
// fleet. The second one is its mode.
const lifeArgument = "life"

type actor struct {
	name, mode string
	replicas   int
	manual     bool // claims are renewed by the worker
	keys       string
}

// actors is the fleet. A claim's ttl is over two seconds, since of a pause longer
// than that the supervisor says that nobody's time ran.
var actors = []actor{
	{name: "sort", mode: modeTask, replicas: 2},
	{name: "print", mode: modeTask, replicas: 2, keys: "on_worker_lost: park"},
	{name: "fold", mode: modeTask, replicas: 2, keys: "workspace: {reclaim: on_success}"},
	{name: "press", mode: modeChannel, replicas: 3},
	{name: "bind", mode: modeChannel, replicas: 2, manual: true},
	{name: "ship", mode: modeSocket, replicas: 2, manual: true, keys: "on_worker_lost: park"},
	{name: "walk", mode: modeShell, replicas: 2},
	{name: "count", mode: modeSocket, replicas: 2, keys: "watchdog: 4s"},
}

// recipient chooses an actor. The worker in sh, which starts a process for each
// request, gets less than the others.
func recipient(n int) string {
	a := actors[n%len(actors)]
	if a.mode == modeShell && n/len(actors)%4 != 0 {
		a = actors[0]
	}
	return a.name
}

const maxAttempts = 4

// writeFleet writes actors.yaml into folder, and the folders that lives log to.
func writeFleet(folder, self string) error {
	for _, name := range []string{"logs", "locks"} {
		if err := os.Mkdir(filepath.Join(folder, name), 0o700); err != nil {
			return err
		}
	}
	quoted, err := json.Marshal(self) // a JSON string is a YAML one
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, `version: 1
data: store
defaults:
  stop: {timeout: 2s}
  backoff: {initial: 50ms, max: 500ms, jitter: 0.2}
  intensity: {restarts: 1000, within: 1s}
  retry: {max_attempts: %d, initial: 50ms, max: 1s, jitter: 0.2}
  timeout: 4s
  lease: {ttl: 5s}
actors:
`, maxAttempts)
	for _, a := range actors {
		mode, renew := "worker", "auto"
		if a.mode == modeTask {
			mode = "task"
		}
		if a.manual {
			renew = "manual"
		}
		fmt.Fprintf(&b, "  %s:\n    command: [%s, %s, %s]\n    mode: %s\n    replicas: %d\n", a.name, quoted, lifeArgument, a.mode, mode, a.replicas)
		if a.mode != modeTask {
			fmt.Fprintf(&b, "    claim: {ttl: 3s, renew: %s}\n", renew)
		}
		if a.keys != "" {
			fmt.Fprintf(&b, "    %s\n", a.keys)
		}
	}
	return os.WriteFile(filepath.Join(folder, "actors.yaml"), []byte(b.String()), 0o600)
}
