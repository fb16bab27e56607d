package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/server"
)

// A place is which store a command means, and as whom it asks.
type place struct {
	data   string // folder of the store
	worker string // its socket for workers
	// inherited is the identity of the process that this command was started by,
	// empty for a person's command. Where it is not, the command asks the running
	// supervisor or nobody (P8).
	inherited protocol.Identity
}

// locate decides which store is meant: the --data flag, else SOVEREIGN_SOCKET,
// else SOVEREIGN_DATA, else ./.sovereign. An explicit --data of another store
// leaves an inherited identity behind; where it cannot be known whether it is
// another one, the identity is kept.
func locate(flag string, getenv func(string) string) place {
	socket := getenv("SOVEREIGN_SOCKET")
	identity := inheritedIdentity(getenv)
	switch {
	case flag != "":
		p := placeOf(flag)
		if socket == "" || !provenOther(flag, socket) {
			p.inherited = identity
		}
		return p
	case socket != "":
		return place{data: server.DataOf(socket), worker: socket, inherited: identity}
	}
	folder := getenv("SOVEREIGN_DATA")
	if folder == "" {
		folder = ".sovereign"
	}
	p := placeOf(folder)
	p.inherited = identity
	return p
}

func placeOf(folder string) place {
	return place{data: folder, worker: filepath.Join(folder, server.WorkerSocket)}
}

// inheritedIdentity is what the environment says about the process that this
// command belongs to. A lease token that cannot be read is left 0, which the
// supervisor refuses.
func inheritedIdentity(getenv func(string) string) protocol.Identity {
	token, _ := strconv.ParseUint(getenv("SOVEREIGN_LEASE_TOKEN"), 10, 53)
	return protocol.Identity{Process: getenv("SOVEREIGN_PROCESS"), LeaseToken: protocol.Token(token)}
}

// provenOther says whether folder is certainly not the store whose worker socket
// is socket.
func provenOther(folder, socket string) bool {
	ours, err := os.Stat(folder)
	if err != nil {
		// What does not exist is no store that a supervisor serves.
		return errors.Is(err, fs.ErrNotExist)
	}
	theirs, err := os.Stat(server.DataOf(socket))
	return err == nil && !os.SameFile(ours, theirs)
}
