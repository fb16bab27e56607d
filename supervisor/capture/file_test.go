package capture

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
)

// Runs that are written together are in the files as if each came alone: every byte once
// and in order, none beyond the size of a file, and with the process that wrote it. Let
// fitting take one run more than there is room for, or count a run's size twice, and this
// fails.
func TestFile_RunsWrittenTogether(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) { // few, for each rotation is synced
		draw := rand.New(rand.NewPCG(seed, 0))
		dir := t.TempDir()
		f := &file{path: filepath.Join(dir, "w.1.log"), maxSize: 50 + draw.Int64N(100), keep: 10_000}
		var all []byte    // what was written
		var from []string // by byte, which process wrote it
		for range 3 {
			var data []byte
			var segments []segment
			for n := range 1 + draw.IntN(9) {
				process := fmt.Sprintf("proc_%d", n)
				run := append(bytes.Repeat([]byte{byte('a' + n)}, draw.IntN(19)), '\n')
				data = append(data, run...)
				segments = append(segments, segment{size: len(run), at: 1, stream: Stdout, process: process})
				for range run {
					from = append(from, process)
				}
			}
			all = append(all, data...)
			if _, lost, err := f.write(data, segments, 0, nil); lost != 0 || err != nil {
				t.Fatalf("lost %d: %v", lost, err)
			}
		}
		f.close()
		if f.settled != nil {
			<-f.settled
		}

		newest := 0
		for ; ; newest++ {
			if _, err := os.Stat(rotated(f.path, newest+1)); err != nil {
				break
			}
		}
		var kept []byte
		for n := newest; n >= 0; n-- {
			text, err := os.ReadFile(rotated(f.path, n))
			if err != nil {
				t.Fatal(err)
			}
			if int64(len(text)) > f.maxSize {
				t.Fatalf("a file holds %d bytes, more than %d", len(text), f.maxSize)
			}
			index, err := os.ReadFile(rotated(f.path, n) + indexSuffix)
			if err != nil {
				t.Fatal(err)
			}
			var end int64
			for line := range bytes.Lines(index) {
				r, ok := parseRun(bytes.TrimSuffix(line, []byte("\n")))
				if !ok || r.offset != end {
					t.Fatalf("after %d the index goes on with %q", end, line)
				}
				end += r.length
				for i := r.offset; i < end; i++ {
					if at := len(kept) + int(i); from[at] != r.process {
						t.Fatalf("byte %d is said to be from %s, and is from %s", at, r.process, from[at])
					}
				}
			}
			if end != int64(len(text)) {
				t.Fatalf("the index covers %d of %d bytes", end, len(text))
			}
			kept = append(kept, text...)
		}
		if !bytes.Equal(kept, all) {
			t.Fatalf("kept %q of %q", kept, all)
		}
	}
}

// While a rotation waits for the disk, the index knows of all that is in the log: who
// follows the log would show it without its stream and time before long. Write the index
// after the wait in rotate and this fails.
func TestFile_IndexIsThereWhileARotationWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &file{path: filepath.Join(t.TempDir(), "w.1.log"), maxSize: 100, keep: 1}
		if err := f.open(); err != nil {
			t.Fatal(err)
		}
		if _, err := f.append([]byte("line\n"), segment{size: 5, at: 1, stream: Stdout, process: "p"}); err != nil {
			t.Fatal(err)
		}
		slow, rotated := make(chan struct{}), make(chan error, 1)
		f.settled = slow
		go func() { rotated <- f.rotate() }()
		synctest.Wait()
		if index, err := os.ReadFile(f.path + indexSuffix); err != nil || string(index) != "0 5 1 o p\n" {
			t.Errorf("the index holds %q, %v", index, err)
		}
		close(slow)
		if err := <-rotated; err != nil {
			t.Error(err)
		}
		f.close()
		<-f.settled
	})
}

// A run that is written between the reader's look at the log and its look at the index
// keeps its stream and time: the index is the newer one of both then. Take the size of
// before for that of the log in advance, and this fails.
func TestReader_IndexIsNewerThanItsLookAtTheLog(t *testing.T) {
	t.Parallel()
	log, err := os.OpenFile(filepath.Join(t.TempDir(), "w.1.log"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	r := &reader{path: log.Name(), actor: "w", slot: 1, log: log, patient: true}
	defer r.close()
	r.index = bufio.NewReader(&lateIndex{log: log})
	if line := r.head(); line == nil || string(line.Text) != "line" || line.Stream != Stdout || line.Process != "p" {
		t.Errorf("%+v, %v", line, r.err)
	}
}

// A lateIndex is an index of which a line is written, after its run, while it is read.
type lateIndex struct {
	log  *os.File
	done bool
}

func (l *lateIndex) Read(b []byte) (int, error) {
	if l.done {
		return 0, io.EOF
	}
	l.done = true
	if _, err := l.log.WriteString("line\n"); err != nil {
		return 0, err
	}
	return copy(b, "0 5 1 o p\n"), nil
}
