package protocol_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sovereign-run/sovereign/protocol"
)

var errPause = errors.New("pause")

// stream gives its parts one by one, with errPause after each.
type stream struct{ parts [][]byte }

func (s *stream) Read(b []byte) (int, error) {
	switch {
	case len(s.parts) == 0:
		return 0, io.EOF
	case len(s.parts[0]) == 0:
		s.parts = s.parts[1:]
		return 0, errPause
	}
	n := copy(b, s.parts[0])
	s.parts[0] = s.parts[0][n:]
	return n, nil
}

// A stream that is passed on, between any two of its bytes and as often as one likes,
// gives the lines that it would have given: none is lost, doubled or cut, and one that is
// too long is one. Forget what was read of a line, and this fails.
func TestRest_GoesOnWithinALine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var text []byte
		for range rapid.IntRange(0, 6).Draw(t, "lines") {
			size := rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(4000, 70_000)).Draw(t, "size")
			text = append(text, strings.Repeat("x", size)...)
			text = append(text, '\n')
		}
		want := linesOf(protocol.NewDecoder(bytes.NewReader(text)))
		var parts [][]byte
		for rest := text; len(rest) > 0; {
			n := min(len(rest), rapid.OneOf(rapid.IntRange(1, 50), rapid.IntRange(1, len(rest))).Draw(t, "part"))
			if len(parts) > 20 {
				n = len(rest)
			}
			parts, rest = append(parts, slices.Clone(rest[:n])), rest[n:]
		}
		if got := passedOn(parts); !slices.Equal(got, want) {
			t.Fatalf("lines of %v bytes, want %v", got, want)
		}
	})
	long := bytes.Repeat([]byte("x"), protocol.MaxLine+5)
	if got := passedOn([][]byte{[]byte("one\n"), slices.Clone(long[:100]), long[100:], []byte("end\ntwo\n")}); !slices.Equal(got, []int{3, -1, 3}) {
		t.Errorf("around a line that is too long: lines of %v bytes", got)
	}
}

// passedOn are the sizes of the lines of parts, between any two of which the stream is
// passed on.
func passedOn(parts [][]byte) (sizes []int) {
	s := &stream{parts}
	for d := protocol.NewDecoder(s); ; d = protocol.Resume(d.Rest(), s) {
		more, err := linesUntil(d)
		sizes = append(sizes, more...)
		if !errors.Is(err, errPause) {
			return sizes
		}
	}
}

// linesUntil are the sizes of the lines that d gives, -1 for one that is too long, and
// the error that ended them.
func linesUntil(d *protocol.Decoder) (sizes []int, err error) {
	for {
		line, err := d.Line()
		switch {
		case errors.Is(err, protocol.ErrLineTooLong):
			sizes = append(sizes, -1)
		case err != nil:
			return sizes, err
		default:
			sizes = append(sizes, len(line))
		}
	}
}

func linesOf(d *protocol.Decoder) []int {
	sizes, _ := linesUntil(d)
	return sizes
}

// More is true exactly where Line answers without the reader: of a stream read in
// pieces, whatever their sizes. Look into one of the two buffers only and this fails.
func TestMore_SaysWhetherALineIsThere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var text []byte
		for range rapid.IntRange(1, 6).Draw(t, "lines") {
			size := rapid.OneOf(rapid.IntRange(1, 40), rapid.IntRange(3000, 70_000)).Draw(t, "size")
			text = append(append(text, bytes.Repeat([]byte("x"), size)...), '\n')
		}
		reads := 0
		d := protocol.NewDecoder(readerFunc(func(b []byte) (int, error) {
			if reads++; len(text) == 0 {
				return 0, io.EOF
			}
			n := copy(b, text[:min(len(text), rapid.OneOf(rapid.IntRange(1, 60), rapid.IntRange(1, 80_000)).Draw(t, "read"))])
			text = text[n:]
			return n, nil
		}))
		for {
			more, before := d.More(), reads
			_, err := d.Line()
			if more != (reads == before) {
				t.Fatalf("more is %v, and Line read %d times", more, reads-before)
			}
			if err != nil {
				return
			}
		}
	})
}

type readerFunc func(b []byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }
