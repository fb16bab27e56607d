package server_test

import (
	"errors"
	"net"
)

// broken is a connection whose writes fail once after bytes have gone out.
type broken struct {
	net.Conn
	after int
}

var errBroken = errors.New("the pipe is broken")

func (b broken) Write(p []byte) (int, error) {
	n, _ := b.Conn.Write(p[:min(len(p), b.after)])
	return n, errBroken
}
