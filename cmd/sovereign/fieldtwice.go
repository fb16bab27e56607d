package main

import (
	"encoding/json"
	"strings"
)

// fieldTwice returns the name of a field that stands twice in one object of a line, which
// is JSON: the decoder would take the last, and say nothing of the other. The case of a
// line's own fields does not count, as it does not to the decoder.
func fieldTwice(line []byte) (name string, twice bool) {
	var open []map[string]bool // the names in each object that has not ended; nil is a list
	names := false             // the next string is the name of a field
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '{':
			open, names = append(open, map[string]bool{}), true
		case '[':
			open, names = append(open, nil), false
		case '}', ']':
			open, names = open[:len(open)-1], false
		case ',':
			names = open[len(open)-1] != nil
		case '"':
			begin := i
			for i++; line[i] != '"'; i++ {
				if line[i] == '\\' {
					i++
				}
			}
			if !names {
				continue
			}
			names = false
			if json.Unmarshal(line[begin:i+1], &name) != nil {
				continue
			}
			folded := name
			if len(open) == 1 {
				folded = strings.ToLower(name)
			}
			in := open[len(open)-1]
			if in[folded] {
				return name, true
			}
			in[folded] = true
		}
	}
	return "", false
}
