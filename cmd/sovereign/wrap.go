package main

import "strings"

// wrapped is s, one line of text, in lines of at most width cells, at most so many of
// them; 0 is no limit of either. Lines are broken at blanks, but not within a command in
// backquotes that fits on one; those after the first are set in by two. Where something
// is missing the last line ends in ….
func wrapped(s string, width, most int) []string { return hung(s, width, most, "  ") }

// hung is wrapped with an indent of its own.
func hung(s string, width, most int, indent string) []string {
	if width <= 2*len(indent) || cells(s) <= width {
		return []string{s}
	}
	var lines []string
	line := ""
	for _, w := range words(s, width-len(indent)) {
		switch {
		case line == "" || line == indent:
			line += w
		case cells(line)+1+cells(w) <= width:
			line += " " + w
		case len(lines)+1 == most:
			return append(lines, cutTo(line+" "+w, width))
		default:
			lines, line = append(lines, line), indent+w
		}
	}
	return append(lines, line)
}

// words are what s is broken into: at its blanks, at those in backquotes where that is
// wider than width, and what has none is cut into pieces of it.
func words(s string, width int) []string {
	var out []string
	for i, part := range strings.SplitAfter(s, "`") {
		command := strings.TrimSuffix(part, "`")
		if i%2 == 1 && part != command && 1+cells(part) <= width {
			out[len(out)-1] += part // the last word is the opening quote
			continue
		}
		fields := strings.Split(part, " ")
		if i > 0 {
			out[len(out)-1] += fields[0]
			fields = fields[1:]
		}
		out = append(out, fields...)
	}
	var cut []string
	for _, w := range out {
		for cells(w) > width {
			n := 0
			for i, r := range w {
				if n += runeCells(r); n > width {
					cut, w = append(cut, w[:i]), w[i:]
					break
				}
			}
		}
		cut = append(cut, w)
	}
	return cut
}
