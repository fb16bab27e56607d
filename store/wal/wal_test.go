package wal_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"github.com/sovereign-run/sovereign/store/wal"
)

func record(payload []byte) []byte { return append(make([]byte, wal.HeaderLen), payload...) }

func open(t interface{ Fatal(...any) }, name string) *wal.File {
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	f, err := wal.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// uses appends several uses to one file and returns the records of the last, whose
// salt and first number are the number of uses, and the file.
func uses(t *rapid.T, name string) (payloads [][]byte, salt uint64) {
	f := open(t, name)
	defer f.Close()
	for salt = range uint64(rapid.IntRange(1, 4).Draw(t, "uses")) {
		salt++
		payloads = nil
		if err := f.Begin(salt, 100*salt, record([]byte("head"))); err != nil {
			t.Fatal(err)
		}
		for i := range rapid.IntRange(0, 8).Draw(t, "records") {
			p := bytes.Repeat([]byte{byte(salt)}, rapid.IntRange(0, 300).Draw(t, "length"))
			if err := f.Append(100*salt+uint64(i)+1, record(p)); err != nil {
				t.Fatal(err)
			}
			payloads = append(payloads, p)
		}
	}
	return payloads, salt
}

// What is read back is what was appended, of the last use alone; and with bytes of one
// record damaged, what lies before it, while Last tells of what lies behind. Leave the
// salt out of the comparison in parse and this fails.
func TestFile_ReadsBackWhatWasAppended(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log")
	rapid.Check(t, func(t *rapid.T) {
		_ = os.Remove(name)
		want, salt := uses(t, name)
		content, err := load(name)
		if err != nil {
			t.Fatal(err)
		}
		first, head, ok := content.Head(salt)
		if !ok || first != 100*salt || string(head) != "head" {
			t.Fatalf("head: got %d %q %v", first, head, ok)
		}
		if _, _, ok := content.Head(salt - 1); ok {
			t.Fatal("it has the head of the use before")
		}
		check := func(n int) {
			i := 0
			if err := content.Records(salt, func(number uint64, payload []byte) error {
				if i >= n || number != 100*salt+uint64(i)+1 || !bytes.Equal(payload, want[i]) {
					t.Fatalf("record %d of %d: got number %d, %d bytes", i, n, number, len(payload))
				}
				i++
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if i != n {
				t.Fatalf("got %d records, want %d", i, n)
			}
		}
		check(len(want))
		if got, size := content.Beyond(salt, 100*salt+uint64(len(want))); got != 0 || size > uint64(len(content)) {
			t.Fatalf("beyond the last: got %d, of %d bytes", got, size)
		}
		if len(want) == 0 {
			return
		}
		// The record at is damaged in its header or its payload.
		at, offset := rapid.IntRange(0, len(want)-1).Draw(t, "damaged"), 0
		for i := -1; i < at; i++ {
			n := wal.HeaderLen + len("head")
			if i >= 0 {
				n = wal.HeaderLen + len(want[i])
			}
			offset += (n + 7) / 8 * 8
		}
		offset += rapid.IntRange(0, wal.HeaderLen+len(want[at])-1).Draw(t, "byte")
		content[offset] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		check(at)
		beyond, _ := content.Beyond(salt, 100*salt+uint64(at))
		if last := 100*salt + uint64(len(want)); at+1 < len(want) && beyond != last {
			t.Fatalf("damage before the last record: %d is beyond, want %d", beyond, last)
		} else if at+1 == len(want) && beyond != 0 {
			t.Fatalf("damage of the last record: %d is beyond", beyond)
		}
	})
}

// A power cut may take any of the records that were appended since the last sync: what is
// whole behind one of these is no damage, and behind any other one it is.
func TestContent_TellsWhatACutTookFromDamage(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		name := filepath.Join(dir, "log")
		_ = os.Remove(name)
		f := open(t, name)
		defer f.Close()
		if err := errors.Join(f.Begin(7, 100, record(nil)), f.Sync()); err != nil {
			t.Fatal(err)
		}
		// How many of the records before each are durable when it is appended.
		var durable []int
		var starts []int64
		synced := 0
		for i := range rapid.IntRange(1, 8).Draw(t, "records") {
			durable, starts = append(durable, synced), append(starts, f.Len())
			r := record(make([]byte, rapid.IntRange(0, 60).Draw(t, "size")))
			write := f.Append
			if rapid.Bool().Draw(t, "unsynced") {
				write = f.AppendUnsynced
			} else {
				synced = i + 1
			}
			if err := write(101+uint64(i), r); err != nil {
				t.Fatal(err)
			}
			if rapid.IntRange(0, 3).Draw(t, "sync") == 0 {
				if err := f.Sync(); err != nil {
					t.Fatal(err)
				}
				synced = i + 1
			}
		}
		content, err := load(name)
		if err != nil {
			t.Fatal(err)
		}
		gone := rapid.IntRange(0, len(starts)-1).Draw(t, "gone")
		content[starts[gone]+20] ^= 1
		want := uint64(0)
		for i := gone + 1; i < len(starts); i++ {
			if durable[i] > gone {
				want = 101 + uint64(i)
			}
		}
		if got, _ := content.Beyond(7, 100+uint64(gone)); got != want {
			t.Fatalf("without %d: %d is beyond, want %d", 101+gone, got, want)
		}
	})
}

// A file that is shorter than its last record, by any number of bytes, ends before it.
func TestContent_EndsAtACutRecord(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log")
	f := open(t, name)
	defer f.Close()
	if err := f.Begin(7, 1, record(nil)); err != nil {
		t.Fatal(err)
	}
	for i := range uint64(3) {
		if err := f.Append(i+2, record(make([]byte, 50))); err != nil {
			t.Fatal(err)
		}
	}
	whole, err := load(name)
	if err != nil {
		t.Fatal(err)
	}
	size := (wal.HeaderLen + 7) / 8 * 8
	each := (wal.HeaderLen + 50 + 7) / 8 * 8
	for n := range size + 3*each {
		got, want := 0, max(0, n-size+each-wal.HeaderLen-50)/each
		if n < size {
			want = 0
		}
		if err := whole[:n].Records(7, func(uint64, []byte) error { got++; return nil }); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("cut at %d: %d records, want %d", n, got, want)
		}
	}
}

// Holds tells whether the record of the last Append can be read, and not another one.
func TestFile_HoldsWhatItAppended(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log")
	f := open(t, name)
	defer f.Close()
	holds := func(number uint64, want bool) {
		t.Helper()
		if got, err := f.Holds(number); err != nil || got != want {
			t.Errorf("number %d: got %v, %v", number, got, err)
		}
	}
	if err := f.Begin(7, 1, record(nil)); err != nil {
		t.Fatal(err)
	}
	holds(2, false)
	if err := f.Append(2, record([]byte("two"))); err != nil {
		t.Fatal(err)
	}
	holds(2, true)
	holds(3, false)
	if err := os.Truncate(name, f.Len()-10); err != nil {
		t.Fatal(err)
	}
	holds(2, false)
}

// What is not there, or no log, has no records, whatever it holds.
func FuzzContent(f *testing.F) {
	f.Add([]byte{}, uint64(0))
	f.Add(make([]byte, 100), uint64(0))
	f.Add(bytes.Repeat([]byte{0, 0, 0, 24}, 20), uint64(0x18))
	f.Fuzz(func(t *testing.T, b []byte, salt uint64) {
		n := 0
		_ = wal.Content(b).Records(salt, func(uint64, []byte) error { n++; return nil })
		wal.Content(b).Beyond(salt, 0)
		if _, _, ok := wal.Content(b).Head(salt); !ok && n > 0 {
			t.Error("records without a head")
		}
	})
}

func load(name string) (wal.Content, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return wal.Load(f)
}
