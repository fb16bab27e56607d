package capture

import (
	"bytes"
	"strconv"
)

// An indexed is one line of an index: where a run of bytes lies, when it came,
// and from whom.
type indexed struct {
	offset, length, at int64
	stream, process    string
	partial            bool
}

// appendRun appends "OFFSET LENGTH NANOSECONDS STREAM PROCESS[ p]\n".
func appendRun(b []byte, r indexed) []byte {
	for _, n := range []int64{r.offset, r.length, r.at} {
		b = strconv.AppendInt(b, n, 10)
		b = append(b, ' ')
	}
	b = append(b, streamLetter(r.stream), ' ')
	if r.process == "" {
		b = append(b, '-')
	}
	b = append(b, r.process...)
	if r.partial {
		b = append(b, " p"...)
	}
	return append(b, '\n')
}

// parseRun reads such a line, without its newline. What is no such line, perhaps
// cut short by a crash, is not ok.
func parseRun(line []byte) (r indexed, ok bool) {
	f := bytes.Fields(line)
	if len(f) != 5 && len(f) != 6 {
		return indexed{}, false
	}
	for i, to := range []*int64{&r.offset, &r.length, &r.at} {
		n, err := strconv.ParseInt(string(f[i]), 10, 64)
		if err != nil || n < 0 {
			return indexed{}, false
		}
		*to = n
	}
	switch string(f[3]) {
	case "o":
		r.stream = Stdout
	case "e":
		r.stream = Stderr
	case "s":
	default:
		return indexed{}, false
	}
	if r.process = string(f[4]); r.process == "-" {
		r.process = ""
	}
	if len(f) == 6 {
		if string(f[5]) != "p" {
			return indexed{}, false
		}
		r.partial = true
	}
	return r, r.length > 0
}

// streamLetter is 's' for the supervisor's own notes.
func streamLetter(stream string) byte {
	switch stream {
	case Stdout:
		return 'o'
	case Stderr:
		return 'e'
	}
	return 's'
}
