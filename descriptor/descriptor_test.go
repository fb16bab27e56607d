package descriptor_test

import (
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/sovereign-run/sovereign/descriptor"
)

// The number is that of the very descriptor, which goes on as before; of what is closed or
// has none it is None, which the system refuses.
func TestOf_NamesTheDescriptor(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := syscall.Write(int(descriptor.Of(w)), []byte("x")); err != nil {
		t.Fatal(err)
	}
	var b [1]byte
	if n, err := r.Read(b[:]); n != 1 || b[0] != 'x' {
		t.Errorf("%d bytes, %v", n, err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if descriptor.Of(l) == descriptor.None {
		t.Error("a listener has none")
	}
	var none *os.File
	for _, c := range []any{w, none, nil, "x"} {
		if fd := descriptor.Of(c); fd != descriptor.None || int(fd) != -1 {
			t.Errorf("of %v it is %d", c, fd)
		}
	}
}
