package capture

import (
	"bufio"
	"bytes"
	"io"
	"os"
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

// trimIndex cuts what does not belong to a log of size bytes off its index: a line
// that is not whole, and runs beyond the log's end. A power cut may leave both, since
// the kernel writes the two files out in any order, and so does whoever empties the
// log in place. What is appended would else be told with another's times.
func trimIndex(index *os.File, size int64) {
	info, err := index.Stat()
	if err != nil || info.Size() == 0 {
		return
	}
	// 1. As a rule the last line says that all is well.
	tail := make([]byte, min(info.Size(), 256))
	if n, err := index.ReadAt(tail, info.Size()-int64(len(tail))); err == nil || err == io.EOF {
		lines := bytes.Split(tail[:n], []byte("\n"))
		if len(lines) > 2 && len(lines[len(lines)-1]) == 0 {
			if r, ok := parseRun(lines[len(lines)-2]); ok && r.offset+r.length <= size {
				return
			}
		}
	}
	// 2. Else the whole lines from the start on, as far as they are the log's.
	in := bufio.NewReader(io.NewSectionReader(index, 0, info.Size()))
	var keep int64
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			break
		}
		if r, ok := parseRun(line[:len(line)-1]); !ok || r.offset+r.length > size {
			break
		}
		keep += int64(len(line))
	}
	index.Truncate(keep)
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
