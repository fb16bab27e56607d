package capture_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sovereign-run/sovereign/supervisor/capture"
)

// Rotated files that a person removed from the middle hide none of those before and after
// them: all other lines are read, in their order, and where some are missing a note says
// which files are not there. Have whereIs or place end at the first number that is missing,
// or leave out the note, and this fails.
func TestLast_GoesOverRemovedFiles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		removed []int
		notes   []string
	}{
		{[]int{2}, []string{"w.1.log.2 is not there"}},
		{[]int{3, 4}, []string{"w.1.log.4 to w.1.log.3 are not there"}},
		{[]int{1}, []string{"w.1.log.1 is not there"}},
		{[]int{1, 3}, []string{"w.1.log.3 is not there", "w.1.log.1 is not there"}},
		{[]int{5}, nil}, // the oldest: nobody can tell that there was one
	} {
		t.Run(fmt.Sprint(c.removed), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			l := open(t, dir, capture.Options{File: true, MaxSize: 100, Keep: 5}, nil)
			sh(t, l, `seq 100 299`)
			drain(t, l)
			var want []string // oldest first, with "" where a note comes
			for n := 5; n >= 0; n-- {
				path := capture.Path(dir, "w", 1)
				if n > 0 {
					path += "." + strconv.Itoa(n)
				}
				if !slices.Contains(c.removed, n) {
					b, err := os.ReadFile(path)
					if err != nil {
						t.Fatal(err)
					}
					want = append(want, strings.Fields(string(b))...)
					continue
				}
				if n < 5 && want[len(want)-1] != "" {
					want = append(want, "")
				}
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
			}
			check := func(lines int, next func(i int) capture.Line) {
				t.Helper()
				notes := c.notes
				for i, text := range want[len(want)-lines:] {
					got := next(i)
					switch {
					case text != "" && (string(got.Text) != text || got.Stream != capture.Stdout):
						t.Fatalf("of the last %d line %d is %q of %q, want %q", lines, i, got.Text, got.Stream, text)
					case text == "" && (got.Stream != "" || string(got.Text) != "[sovereign: lines may be missing here: "+notes[0]+"]"):
						t.Fatalf("of the last %d line %d is %q of %q, want the note that %s", lines, i, got.Text, got.Stream, notes[0])
					case text == "":
						notes = notes[1:]
					}
				}
			}
			all := last(t, dir, -1)
			if len(all) != len(want) {
				t.Fatalf("%d lines are read, want %d: %q", len(all), len(want), texts(all))
			}
			check(len(want), func(i int) capture.Line { return all[i] })
			most := last(t, dir, len(want)-1) // begins in the oldest file
			check(len(want)-1, func(i int) capture.Line { return most[i] })
			next, stop := follow(t, dir, -1)
			defer stop()
			check(len(want), func(int) capture.Line { return next() })
		})
	}
}
