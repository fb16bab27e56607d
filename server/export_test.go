package server

import (
	"io"
	"net"
	"time"
)

// NewPatient is how a link writes to its connection.
func NewPatient(conn net.Conn, timeout time.Duration) io.Writer { return newPatient(conn, timeout) }
