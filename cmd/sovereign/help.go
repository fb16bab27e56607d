package main

import (
	"bytes"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// fitHelp has the help of cmd and of all below it fit the terminal that it is written to.
func fitHelp(cmd *cobra.Command) {
	whole := cmd.HelpFunc()
	cmd.SetHelpFunc(func(c *cobra.Command, args []string) {
		out := c.OutOrStdout()
		width := terminalWidth(out)
		if width == 0 {
			whole(c, args)
			return
		}
		var b bytes.Buffer
		c.SetOut(&b)
		whole(c, args)
		c.SetOut(out)
		_, _ = io.WriteString(out, fitText(b.String(), width))
	})
}

// entry is a line of a list: a name, two blanks or more, and what it is.
var entry = regexp.MustCompile(`^( +\S.*? {2,})(\S.*)$`)

// fitText is text in which no line is wider than width. A paragraph of which a line is,
// is filled anew; of an entry of a list what it says stays in its column; other lines that
// are set in keep that.
func fitText(text string, width int) string {
	var out []string
	var paragraph []string
	examples := false
	flush := func() {
		if slices.ContainsFunc(paragraph, func(line string) bool { return cells(line) > width }) {
			paragraph = hung(strings.Join(paragraph, " "), width, 0, "")
		}
		out, paragraph = append(out, paragraph...), nil
	}
	for line := range strings.SplitSeq(text, "\n") {
		if line != "" && line[0] != ' ' {
			paragraph, examples = append(paragraph, line), line == "Examples:"
			continue
		}
		flush()
		if examples {
			out = append(out, line)
		} else {
			out = append(out, fitLine(line, width)...)
		}
	}
	flush()
	return strings.Join(out, "\n")
}

func fitLine(line string, width int) []string {
	if cells(line) <= width {
		return []string{line}
	}
	if m := entry.FindStringSubmatch(line); m != nil && cells(m[1]) <= width/2 {
		indent := strings.Repeat(" ", cells(m[1]))
		lines := hung(m[2], width-len(indent), 0, "")
		for i := range lines {
			if i == 0 {
				lines[i] = m[1] + lines[i]
			} else {
				lines[i] = indent + lines[i]
			}
		}
		return lines
	}
	margin := line[:len(line)-len(strings.TrimLeft(line, " "))]
	lines := hung(line[len(margin):], width-len(margin), 0, "  ")
	for i := range lines {
		lines[i] = margin + lines[i]
	}
	return lines
}
