package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

// openLines opens a file of JSON lines; - is the standard input.
func openLines(stdin io.Reader, name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(stdin), nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, usage("read "+name, reason(err), "")
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
		if err == nil && decoder.InputOffset() != int64(len(text)) {
			err = errors.New("something follows the object")
		}
		if err == nil {
			err = protocol.CheckText(text)
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

// encodedSize is how many bytes v takes in a request.
func encodedSize(v any) (int, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return 0, refusal.New(refusal.BadRequest, "a line cannot be sent", err.Error(), "")
	}
	return len(b) + 1, nil
}
