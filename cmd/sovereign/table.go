package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/term"
)

// A column is one column of a table; a number is set to the right. Where the table
// would be wider than the terminal, columns are cut to what they need at least, the
// ones that give way most first; then columns are left out, likewise; then the ones
// that are left are cut further.
type column struct {
	name   string
	gives  int // 0: never cut
	least  int // cells; 0: as many as its name has
	drops  int // 0: never left out
	number bool
}

// A table is rows under columns.
type table struct {
	columns []column
	rows    [][]string
}

func (t *table) add(cells ...string) {
	for i := range cells {
		cells[i] = printable(cells[i])
		if cells[i] == "" {
			cells[i] = "-"
		}
	}
	t.rows = append(t.rows, cells)
}

const gap = 2 // blanks between two columns, where there is room

// write writes the table so that no line is wider than width; 0 means that
// there is no limit.
func (t *table) write(w io.Writer, width int) error {
	widths, gap := t.fit(width)
	var b strings.Builder
	header := make([]string, len(t.columns))
	for i, c := range t.columns {
		header[i] = c.name
	}
	for _, row := range append([][]string{header}, t.rows...) {
		var line strings.Builder
		for i, cell := range row {
			if widths[i] == 0 {
				continue
			}
			cell = cutTo(cell, widths[i])
			pad := strings.Repeat(" ", widths[i]-cells(cell))
			if t.columns[i].number {
				line.WriteString(pad + cell)
			} else {
				line.WriteString(cell + pad)
			}
			line.WriteString(strings.Repeat(" ", gap))
		}
		b.WriteString(cutTo(strings.TrimRight(line.String(), " "), width))
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// fit returns the width of each column, 0 for one that is left out, and the gap
// between them.
func (t *table) fit(width int) (widths []int, between int) {
	const cut = 4 // a cell of so many still says something
	full := make([]int, len(t.columns))
	for i, c := range t.columns {
		full[i] = cells(c.name)
		for _, row := range t.rows {
			full[i] = max(full[i], cells(row[i]))
		}
	}
	most := 0
	for _, c := range t.columns {
		most = max(most, c.drops)
	}
	asked := func(i int) int {
		if t.columns[i].gives == 0 {
			return full[i]
		}
		return max(t.columns[i].least, cells(t.columns[i].name))
	}
	for rank := most + 1; rank > 0; rank-- {
		for i, c := range t.columns {
			if c.drops == rank {
				full[i] = 0
			}
		}
		widths = slices.Clone(full)
		if t.shrink(widths, width, gap, asked) {
			return widths, gap
		}
	}
	// All that may be left out is. The names of numbers give way next.
	short := func(i int) int {
		if !t.columns[i].number {
			return widths[i]
		}
		least := cut
		for _, row := range t.rows {
			least = max(least, cells(row[i]))
		}
		return least
	}
	if !t.shrink(widths, width, 1, short) {
		t.shrink(widths, width, 1, func(i int) int {
			if t.columns[i].gives == 0 {
				return widths[i]
			}
			return cut
		})
	}
	return widths, 1
}

// shrink cuts columns down to the least that is asked for, until all go into width,
// and says whether they do.
func (t *table) shrink(widths []int, width, gap int, least func(i int) int) bool {
	excess := -gap - width
	for _, w := range widths {
		if w > 0 {
			excess += w + gap
		}
	}
	if width <= 0 || excess <= 0 {
		return true
	}
	for rank := 9; rank >= 0 && excess > 0; rank-- {
		for i, c := range t.columns {
			if c.gives != rank {
				continue
			}
			give := min(excess, max(0, widths[i]-least(i)))
			widths[i] -= give
			excess -= give
		}
	}
	return excess <= 0
}

// cutTo is s in at most width cells, ending in … where something is missing. A
// width of 0 is no limit.
func cutTo(s string, width int) string {
	if width <= 0 || cells(s) <= width {
		return s
	}
	var b strings.Builder
	used := 0
	for _, r := range s {
		if used+runeCells(r) > width-1 {
			break
		}
		b.WriteRune(r)
		used += runeCells(r)
	}
	return b.String() + "…"
}

// cells is the number of terminal cells that s takes.
func cells(s string) int {
	n := 0
	for _, r := range s {
		n += runeCells(r)
	}
	return n
}

// runeCells is 0 for marks, 2 for the wide scripts and emoji, 1 otherwise
// (Unicode annex 11, the ranges that terminals agree on).
func runeCells(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case r >= 0x1100 && r <= 0x115F, r >= 0x2E80 && r <= 0xA4CF, r >= 0xAC00 && r <= 0xD7A3,
		r >= 0xF900 && r <= 0xFAFF, r >= 0xFE30 && r <= 0xFE6F, r >= 0xFF00 && r <= 0xFF60,
		r >= 0xFFE0 && r <= 0xFFE6, r >= 0x1F300 && r <= 0x1F64F, r >= 0x1F900 && r <= 0x1F9FF,
		r >= 0x20000 && r <= 0x3FFFD:
		return 2
	default:
		return 1
	}
}

// terminalWidth is the width of the terminal that w is, 0 where w is none.
func terminalWidth(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// isTerminal says whether f, a reader or writer, is a terminal.
func isTerminal(f any) bool {
	file, ok := f.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// colourful says whether colour may be written to w: a terminal that is not
// dumb, and no NO_COLOR (https://no-color.org).
func colourful(w io.Writer) bool {
	return isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// fields writes label and value pairs, one a line, labels aligned; pairs without
// a value are left out.
func fields(w io.Writer, pairs ...string) error {
	widest := 0
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			widest = max(widest, cells(pairs[i]))
		}
	}
	var b strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			fmt.Fprintf(&b, "%-*s  %s\n", widest, pairs[i], pairs[i+1])
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
