// Package storetest is the suite that every engine of store.Store must pass.
//
// An engine's test calls Run with a Factory. Each property is a subtest; its
// comment names the line of the contract or of package store that it holds. The
// suite uses nothing but the interface, real concurrency and, for the model,
// reopening; what only one engine has (locks, damage, crashes) is tested there.
package storetest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/sovereign-run/sovereign/store"
)

// A Factory opens stores for the suite.
type Factory struct {
	// Open opens the store kept in dir, an empty folder at first. It may be
	// called again for the same dir after Close.
	Open func(dir string) (store.Store, error)
}

// TB is what the suite needs from a test: *testing.T, or a rapid.T with a folder.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
}

func (f Factory) open(t TB, dir string) store.Store {
	t.Helper()
	s, err := f.Open(dir)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return s
}

// fresh returns an empty store that is closed after the test.
func (f Factory) fresh(t *testing.T) store.Store {
	t.Helper()
	s := f.open(t, t.TempDir())
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// Run runs the suite.
func Run(t *testing.T, f Factory) {
	for _, p := range []struct {
		name string
		test func(*testing.T, Factory)
	}{
		{"Update_StoresWhatItConfirms", testStores},
		{"Update_LeavesNothingBehindAnError", testError},
		{"Update_LeavesNothingBehindAPanic", testPanic},
		{"Update_SeesItsOwnWrites", testOwnWrites},
		{"Update_FailingFunctionsDoNotTouchTheirNeighbours", testNeighbours},
		{"Update_StopsAtTheBounds", testBounds},
		{"Update_RefusesBadKeys", testBadKeys},
		{"Update_ErrorsAreSticky", testSticky},
		{"Update_GivesUpWaitingWhenTheContextEnds", testContext},
		{"Update_IsSerial", testSerial},
		{"View_SeesOneState", testView},
		{"Scan_KeepsOrderAndBounds", testScan},
		{"Scan_SkipsWhatIsEmptied", testScanEmptied},
		{"Sums_AddUp", testSums},
		{"Numbers_NeverRepeat", testNumbers},
		{"Model", testModel},
	} {
		t.Run(p.name, func(t *testing.T) { p.test(t, f) })
	}
}

var (
	ctx     = context.Background()
	errFn   = errors.New("the function's own error")
	present = []byte("x")
)

func update(t TB, s store.Store, fn func(store.Tx)) {
	t.Helper()
	if err := s.Update(ctx, func(tx store.Tx) error { fn(tx); return nil }); err != nil {
		t.Fatalf("update: %v", err)
	}
}

func view(t TB, s store.Store, fn func(store.Reader)) {
	t.Helper()
	if err := s.View(ctx, func(r store.Reader) error { fn(r); return nil }); err != nil {
		t.Fatalf("view: %v", err)
	}
}

// dump returns what lies in [from, to) as text, in order.
func dump(r store.Reader, from, to []byte) []string {
	var list []string
	r.Scan(from, to, func(k, v []byte) bool {
		list = append(list, fmt.Sprintf("%s=%s", k, v))
		return true
	})
	return list
}

func dumpBack(r store.Reader, from, to []byte) []string {
	var list []string
	r.ScanBack(from, to, func(k, v []byte) bool {
		list = append(list, fmt.Sprintf("%s=%s", k, v))
		return true
	})
	return list
}

func dumpSums(r store.Reader, prefix string) []string {
	var list []string
	r.Sums([]byte(prefix), func(name []byte, v int64) bool {
		list = append(list, sumText(string(name), v))
		return true
	})
	return list
}

func sumText(name string, v int64) string { return fmt.Sprintf("%s=%d", name, v) }

func numberKey(space byte, n uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{space}, n)
}
