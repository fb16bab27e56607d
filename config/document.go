package config

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// maxText is the longest file that is read, actors.yaml or env_file.
const maxText = 1 << 20

const byteOrderMark = "\ufeff"

// document turns text into its one node. After an error in the encoding or the
// syntax there is nothing to go on with, so that problem stands alone. second
// is where a further document begins, nil where there is none.
func document(path string, text []byte) (root, second *yaml.Node, problem *Problems) {
	if p := unreadable(path, text); p != nil {
		return nil, nil, p
	}
	if line := section(text); line > 0 {
		return nil, nil, alone(path, line, 1, "this is an INI file, as supervisord reads it, allowed: YAML, as `sovereign init` writes it; "+
			"[program:NAME] with command=… is there actors: NAME: {mode: daemon, command: …}")
	}
	loader, err := yaml.NewLoader(bytes.NewReader(text))
	if err != nil {
		return nil, nil, alone(path, 1, 1, "start the YAML reader: "+err.Error())
	}
	first, further := new(yaml.Node), new(yaml.Node)
	switch err := loader.Load(first); {
	case errors.Is(err, io.EOF):
		return nil, nil, alone(path, 1, 1, emptyFile)
	case err != nil:
		return nil, nil, syntax(path, text, err)
	}
	switch err := loader.Load(further); {
	case errors.Is(err, io.EOF):
		further = nil
	case err != nil:
		return nil, nil, syntax(path, text, err)
	}
	if len(first.Content) != 1 {
		return nil, nil, alone(path, 1, 1, emptyFile)
	}
	return first.Content[0], further, nil
}

const emptyFile = "the file is empty, allowed: a mapping with at least one actor under actors"

// section is the line of the heading that a file in INI format begins with, behind
// comments; 0 where text begins otherwise. No mapping begins like that.
func section(text []byte) int {
	number := 0
	for line := range bytes.Lines(bytes.TrimPrefix(text, []byte(byteOrderMark))) {
		number++
		line, _, _ = bytes.Cut(bytes.TrimSpace(line), []byte(" ;"))
		switch {
		case len(line) == 0, line[0] == ';', line[0] == '#':
			continue
		case line[0] == '[' && bytes.IndexByte(line, ']') == len(bytes.TrimSpace(line))-1 && !bytes.ContainsAny(line, `",`):
			return number
		}
		return 0
	}
	return 0
}

// unreadable looks for what no YAML reader would get past, and says where.
func unreadable(path string, text []byte) *Problems {
	if len(text) > maxText {
		return alone(path, 0, 0, "the file is too large, allowed: at most "+FormatSize(maxText))
	}
	if bytes.HasPrefix(text, []byte{0xff, 0xfe}) || bytes.HasPrefix(text, []byte{0xfe, 0xff}) {
		return alone(path, 1, 1, "the text is UTF-16, allowed: UTF-8")
	}
	line, column := 1, 1
	for at := 0; at < len(text); {
		r, width := utf8.DecodeRune(text[at:])
		switch {
		case r == utf8.RuneError && width == 1:
			return alone(path, line, column, "byte 0x"+strconv.FormatUint(uint64(text[at]), 16)+
				" is no UTF-8, allowed: text in UTF-8")
		case r == 0:
			return alone(path, line, column, "there is a NUL character, allowed: any other")
		case control(r):
			return alone(path, line, column, "there is a control character "+strconv.QuoteRuneToASCII(r)+
				", allowed: text; in double quotes it can be written as an escape")
		case string(r) == byteOrderMark && at > 0:
			return alone(path, line, column, "there is a byte order mark, allowed: at the start of the file only")
		}
		at += width
		switch {
		case r == '\n', r == '\r' && !bytes.HasPrefix(text[at:], []byte("\n")):
			line, column = line+1, 1
		case string(r) != byteOrderMark:
			column++
		}
	}
	return nil
}

// control reports whether YAML forbids r unescaped.
func control(r rune) bool {
	switch {
	case r == '\t', r == '\n', r == '\r', r == 0x85:
		return false
	}
	return r < 0x20 || r >= 0x7f && r < 0xa0 || r == 0xfffe || r == 0xffff
}

// syntax is the one problem of a text that is no YAML.
func syntax(path string, text []byte, err error) *Problems {
	fault, ok := errors.AsType[*yaml.LoadError](err)
	if !ok {
		return alone(path, 1, 1, "YAML: "+err.Error())
	}
	at, what := fault.Mark, fault.Message
	if strings.Contains(fault.ContextMsg, "quoted scalar") {
		// The end of the file is where the quote was missed; where it was
		// opened is where it has to be looked for.
		at = fault.ContextMark
	}
	if fault.ContextMsg != "" {
		what = fault.ContextMsg + ", " + what
	}
	if name, found := strings.CutPrefix(fault.Message, "unknown anchor '"); found {
		what = "alias *" + strings.TrimSuffix(name, "' referenced") + " is not allowed, write the value out"
		return alone(path, max(at.Line, 1), max(at.Column, 1), what)
	}
	return alone(path, max(at.Line, 1), max(at.Column, 1), "YAML: "+what+advice(fault.Message, lineAt(text, at.Line)))
}

// lineAt is the line of text with the number n, from 1; empty beyond the end.
func lineAt(text []byte, n int) []byte {
	lines := bytes.SplitN(text, []byte("\n"), n+1)
	if n < 1 || n > len(lines) {
		return nil
	}
	return lines[n-1]
}

// advice says what is allowed, for the mistakes that people make most. line is
// the one on which the mistake was found.
func advice(message string, line []byte) string {
	switch {
	case strings.Contains(message, "tab"), bytes.HasPrefix(bytes.TrimLeft(line, " "), []byte("\t")):
		return "; indent with spaces"
	case strings.Contains(message, "cannot start any token"):
		return "; put quotes around a text that begins with @, ` or %"
	case strings.Contains(message, "mapping values are not allowed"):
		return `; put quotes around a text that holds ": ", and indent keys of one mapping alike`
	case strings.Contains(message, "expected key"):
		return "; indent keys of one mapping alike"
	case strings.Contains(message, "unexpected end of stream"):
		return "; close the quote"
	}
	return ""
}
