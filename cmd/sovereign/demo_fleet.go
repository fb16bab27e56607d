package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// The fleet of the demonstration: an order goes from pack to label to mail, each
// the follow-up of the one before.
const (
	demoPack  = "pack"
	demoLabel = "label"
	demoMail  = "mail"

	demoData = "store"     // in the folder: the store
	demoSock = "gate.sock" // in the folder: where workers report
	demoLog  = "supervisor.log"
)

// demoStations are the actors in the order in which an order passes them.
var demoStations = []string{demoPack, demoLabel, demoMail}

const demoActors = `version: 1
data: store
defaults:
  stop: {timeout: 2s}
  backoff: {initial: 100ms, jitter: 0}
  retry: {max_attempts: 20, initial: 100ms, jitter: 0}
actors:
  pack:                                # claims are renewed while the process lives
    command: [%[1]s, demo, worker, label]
    mode: worker
    replicas: 2
    env: {DEMO_WORK: %[2]s}
  label:                               # a claim that is not renewed expires
    command: [%[1]s, demo, worker, mail]
    mode: worker
    replicas: 2
    env: {DEMO_WORK: %[2]s}
    claim: {ttl: 1500ms, renew: manual}
  mail:                                # a child for each message
    command: [./mail.sh]
`

const demoMailScript = `#!/bin/sh
# One message: the body is on stdin, the result goes to stdout.
read -r order
echo "$order is in the mail (attempt $SOVEREIGN_ATTEMPT)"
`

// writeDemo writes the fleet into folder. work is how long a worker is busy with
// one message.
func writeDemo(folder, work string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	quoted, err := json.Marshal(self) // a JSON string is a YAML one
	if err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(folder, demoData), 0o711); err != nil {
		return err
	}
	if err := writeNew(filepath.Join(folder, "mail.sh"), demoMailScript, 0o755); err != nil {
		return err
	}
	return writeNew(filepath.Join(folder, "actors.yaml"), fmt.Sprintf(demoActors, quoted, work), 0o644)
}
