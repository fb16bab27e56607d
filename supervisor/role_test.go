package supervisor_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
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

// freeAddress is one that nobody listens on. Where all of 127.0.0.0/8 is this machine,
// it is in a part of that which nobody else uses, who might get the same port.
func freeAddress(t *testing.T) string {
	t.Helper()
	host := "127.0.0.1"
	if runtime.GOOS == "linux" {
		host = fmt.Sprintf("127.77.%d.%d", os.Getpid()>>8&0xff, os.Getpid()&0xff)
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
