package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"golang.org/x/term"
)

// A column is one column of a table. A column that gives way is cut where the
// table would be wider than the terminal, the ones that give way most first;
// a number is set to the right.
type column struct {
	name   string
	gives  int // 0: never cut
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

const gap = 2 // blanks between two columns

// write writes the table so that no line is wider than width; 0 means that
// there is no limit.
func (t *table) write(w io.Writer, width int) error {
	widths := t.fit(width)
	var b strings.Builder
	header := make([]string, len(t.columns))
	for i, c := range t.columns {
		header[i] = c.name
	}
	for _, row := range append([][]string{header}, t.rows...) {
		var line strings.Builder
		for i, cell := range row {
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

// fit returns the width of each column: as wide as its widest cell, less what
// the columns that give way must give for the whole to fit.
func (t *table) fit(width int) []int {
	const least = 4 // a cut cell still says something
	widths := make([]int, len(t.columns))
	total := 0
	for i, c := range t.columns {
		widths[i] = cells(c.name)
		for _, row := range t.rows {
			widths[i] = max(widths[i], cells(row[i]))
		}
		total += widths[i] + gap
	}
	excess := total - gap - width
	if width <= 0 || excess <= 0 {
		return widths
	}
	for rank := 9; rank > 0 && excess > 0; rank-- {
		for i, c := range t.columns {
			if c.gives != rank {
				continue
			}
			give := min(excess, max(0, widths[i]-max(least, cells(c.name))))
			widths[i] -= give
			excess -= give
		}
	}
	return widths
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
