package supervisor_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"testing"
)

func init() {
	roles["http"] = func() {
		if err := http.ListenAndServe(os.Getenv("TEST_ADDRESS"), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// freePort is a port that nobody listens on.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}
