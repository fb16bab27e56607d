package main

import (
	"fmt"
	"net"
	"os"
	"time"
)

// notifyLimit is how long a state may take to be taken.
const notifyLimit = time.Second

// A notifier tells the service manager that started this program how it is
// doing: one datagram to the socket that NOTIFY_SOCKET names (sd_notify(3)). The
// zero notifier tells nobody.
type notifier struct{ socket string }

// takeNotifier takes NOTIFY_SOCKET out of the environment, so that no child
// reports in the name of the supervisor (L6).
func takeNotifier() notifier {
	n := notifier{socket: os.Getenv("NOTIFY_SOCKET")}
	_ = os.Unsetenv("NOTIFY_SOCKET")
	return n
}

// tell sends a state such as "READY=1". A path that begins with @ is a name in
// Linux' abstract space, as package net has it too.
func (n notifier) tell(state string) error {
	if n.socket == "" {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: n.socket, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("tell the service manager: %w", err)
	}
	defer conn.Close()
	// A manager that does not read must not keep the supervisor from its work.
	if err := conn.SetWriteDeadline(time.Now().Add(notifyLimit)); err != nil {
		return fmt.Errorf("tell the service manager: %w", err)
	}
	if _, err := conn.Write([]byte(state)); err != nil {
		return fmt.Errorf("tell the service manager: %w", err)
	}
	return nil
}
