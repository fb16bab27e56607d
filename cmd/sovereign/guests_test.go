package main

import (
	"io"
	"net"
	"path/filepath"
	"testing"
)

// Who asks for metrics and finds no room reads the whole answer and then the end, and no
// reset, though its request was there before it was turned away. Have Accept close the
// connection, and this fails.
func TestGuests_TurnedAwayWithAnAnswer(t *testing.T) {
	for network, address := range map[string]string{"tcp": "127.0.0.1:0", "unix": filepath.Join(t.TempDir(), "m.sock")} {
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := net.Dial(network, l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, "GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		g := newGuests()
		g.limit(0)
		over := make(chan struct{})
		go func() { _, _ = g.at(l).Accept(); close(over) }()
		if got, err := io.ReadAll(conn); string(got) != crowded || err != nil {
			t.Errorf("%s: read %q, %v", network, got, err)
		}
		_ = conn.Close()
		_ = l.Close()
		<-over
	}
}
