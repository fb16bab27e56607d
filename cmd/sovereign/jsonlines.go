package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
	"syscall"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

// openLines opens a file of JSON lines; - is the standard input.
func openLines(stdin io.Reader, name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(stdin), nil
	}
	if name == "" {
		return nil, usage("no file is named", "its name is empty", "name one, or - for the standard input")
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, cannotRead("read "+name, err)
	}
	if about, err := f.Stat(); err == nil && about.IsDir() {
		_ = f.Close()
		return nil, cannotRead("read "+name, &fs.PathError{Op: "read", Path: name, Err: syscall.EISDIR})
	}
	return f, nil
}

// eachLine decodes each line of r that is not empty, strictly, and gives it to fn
// with its number and size. Text that is not UTF-8 is refused, as it is everywhere else:
// decoded, two keys that differ could become one. Every error names the line.
func eachLine[T any](r io.Reader, fn func(line int, v T, size int) error) error {
	lines := bufio.NewReaderSize(r, 64<<10)
	for n := 1; ; n++ {
		text, err := readLine(lines)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return lineRefusal(n, "cannot be read", err.Error())
		}
		text = bytes.TrimSpace(text)
		if n == 1 {
			text = bytes.TrimPrefix(text, []byte("\ufeff"))
		}
		if len(text) == 0 {
			continue
		}
		var v T
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		err = decoder.Decode(&v)
		if err == nil && text[0] != '{' {
			err = errors.New("a line must be an object, not null") // the one other value that decodes
		}
		if err == nil && decoder.InputOffset() != int64(len(text)) {
			err = errors.New("something follows the object")
		}
		if err == nil {
			err = protocol.CheckText(text)
		}
		if err == nil {
			if name, twice := fieldTwice(text); twice {
				err = fmt.Errorf("%q stands twice", protocol.Cut(name, 60))
			}
		}
		if err != nil {
			return lineRefusal(n, lineProblem(err, reflect.TypeFor[T]()), "")
		}
		if err := fn(n, v, len(text)); err != nil {
			return err
		}
	}
}

// A lineError is the number of the line that is wrong.
type lineError int

func (n lineError) Error() string { return fmt.Sprintf("line %d", int(n)) }

func lineRefusal(n int, message, why string) error {
	return refusal.New(refusal.BadRequest, fmt.Sprintf("line %d: %s", n, message), why, "").Because(lineError(n))
}

// readLine reads one line of at most a request's size; io.EOF behind the last.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > protocol.MaxLine:
			return nil, errors.New("it is longer than " + size(protocol.MaxLine))
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && len(line) > 0:
			return line, nil
		}
		return line, err
	}
}

// requestRoom is what the messages of one request may take as JSON.
const requestRoom = protocol.MaxLine - 4096

// encodedSize is how many bytes v, which line n holds, takes in a request. What can be
// read and cannot be written is a time whose zone is a whole day off.
func encodedSize(n int, v any) (int, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return 0, lineRefusal(n, "it holds a time that is none", reason(err))
	}
	return len(b) + 1, nil
}
