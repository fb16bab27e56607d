package worker

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

// Open connects to the supervisor that started this process: over the
// descriptor that SOVEREIGN_FD names, else over the socket of SOVEREIGN_SOCKET
// with the identity of SOVEREIGN_PROCESS and SOVEREIGN_LEASE_TOKEN.
//
// Call it before other programs are started, which would inherit the channel
// otherwise: Open marks it close-on-exec before anything else. A program that no
// supervisor started is refused, unavailable. The caller closes the client.
func Open() (*Client, error) { return open(os.Getenv) }

func open(getenv func(string) string) (*Client, error) {
	if number := getenv("SOVEREIGN_FD"); number != "" {
		fd, err := strconv.Atoi(number)
		if err != nil || fd < 3 {
			return nil, environment("SOVEREIGN_FD is " + strconv.Quote(number) + ", which is no descriptor of a channel")
		}
		syscall.CloseOnExec(fd)
		file := os.NewFile(uintptr(fd), "sovereign")
		conn, err := net.FileConn(file) // a duplicate
		if err != nil {
			return nil, environment(fmt.Sprintf("descriptor %d is no channel: %v", fd, err))
		}
		_ = file.Close()
		return NewClient(conn, protocol.Identity{}), nil
	}
	socket, process := getenv("SOVEREIGN_SOCKET"), getenv("SOVEREIGN_PROCESS")
	if socket == "" || process == "" {
		return nil, environment("neither SOVEREIGN_FD nor SOVEREIGN_SOCKET and SOVEREIGN_PROCESS are set")
	}
	token, err := strconv.ParseUint(getenv("SOVEREIGN_LEASE_TOKEN"), 10, 53)
	if err != nil {
		return nil, environment("SOVEREIGN_LEASE_TOKEN is no token")
	}
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return nil, refusal.New(refusal.Unavailable, "connect to the supervisor", err.Error(),
			"stop: without it nothing that this process does counts").Because(err)
	}
	return NewClient(conn, protocol.Identity{Process: process, LeaseToken: protocol.Token(token)}), nil
}

func environment(why string) error {
	return refusal.New(refusal.Unavailable, "this program has no supervisor", why,
		"declare it as an actor in actors.yaml and start it with `sovereign run`")
}
