package main

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// pgClient speaks version 3 of PostgreSQL's protocol, without a password: statements that
// it has prepared, with parameters and columns in binary form, one at a time.
type pgClient struct {
	wire
	ctx    context.Context // ends with close: who looks again and again looks no more
	cancel context.CancelFunc
	bound  []byte // the message that bound the parameters, for its memory
	row    []byte // the last row
}

// begin opens the session.
func (c *pgClient) begin(user, database string) error {
	b := binary.BigEndian.AppendUint32(make([]byte, 4), 3<<16)
	b = append(b, "user\x00"+user+"\x00database\x00"+database+"\x00\x00"...)
	binary.BigEndian.PutUint32(b, uint32(len(b)))
	if _, err := c.out.Write(b); err != nil {
		return err
	}
	_, _, err := c.answers()
	return err
}

// say queues one message of a request.
func (c *pgClient) say(kind byte, body []byte) {
	c.out.WriteByte(kind)
	var size [4]byte
	binary.BigEndian.PutUint32(size[:], uint32(len(body)+4))
	c.out.Write(size[:])
	c.out.Write(body)
}

// script runs statements without parameters.
func (c *pgClient) script(text string) error {
	c.say('Q', append([]byte(text), 0))
	_, _, err := c.answers()
	return err
}

func (c *pgClient) prepare(name, text string) error {
	c.say('P', append([]byte(name+"\x00"+text+"\x00"), 0, 0))
	c.say('S', nil)
	_, _, err := c.answers()
	return err
}

// execute runs a prepared statement. It returns the last row, which is valid until the
// next request, and how many rows there were or were changed.
func (c *pgClient) execute(name string, params ...[]byte) (row [][]byte, n int, err error) {
	b := append(c.bound[:0], 0) // the portal has no name
	b = append(b, name...)
	b = append(b, 0, 0, 1, 0, 1) // all parameters are binary
	b = binary.BigEndian.AppendUint16(b, uint16(len(params)))
	for _, p := range params {
		b = binary.BigEndian.AppendUint32(b, uint32(len(p)))
		b = append(b, p...)
	}
	b = append(b, 0, 1, 0, 1) // and all columns
	c.say('B', b)
	c.say('E', []byte{0, 0, 0, 0, 0})
	c.say('S', nil)
	c.bound = b
	return c.answers()
}

// answers sends what is queued and reads until the server is ready for more.
func (c *pgClient) answers() (row [][]byte, n int, err error) {
	if err := c.out.Flush(); err != nil {
		return nil, 0, err
	}
	var failed error
	for {
		var head [5]byte
		if _, err := io.ReadFull(c.in, head[:]); err != nil {
			return nil, 0, cmp.Or(failed, err) // what it said before it hung up says more
		}
		size := int(binary.BigEndian.Uint32(head[1:])) - 4
		if size < 0 || size > 1<<30 {
			return nil, 0, fmt.Errorf("PostgreSQL: a message of %d bytes", size)
		}
		b := c.row
		if head[0] != 'D' || cap(b) < size {
			b = make([]byte, size)
		}
		b = b[:size]
		if _, err := io.ReadFull(c.in, b); err != nil {
			return nil, 0, err
		}
		switch head[0] {
		case 'E':
			failed = pgError(b)
		case 'R':
			if kind := binary.BigEndian.Uint32(b); kind != 0 {
				return nil, 0, fmt.Errorf("PostgreSQL wants authentication of kind %d", kind)
			}
		case 'D':
			c.row = b
			if row, err = columns(b); err != nil {
				return nil, 0, err
			}
		case 'C': // such as INSERT 0 1
			words := strings.Fields(strings.TrimRight(string(b), "\x00"))
			n, _ = strconv.Atoi(words[len(words)-1]) // not of all is there a number
		case 'Z':
			return row, n, failed
		}
	}
}

// pgError is an error as the server tells it: fields with a letter each.
func pgError(b []byte) error {
	var code, text string
	for field := range strings.SplitSeq(string(b), "\x00") {
		switch {
		case strings.HasPrefix(field, "C"):
			code = field[1:]
		case strings.HasPrefix(field, "M"):
			text = field[1:]
		}
	}
	return fmt.Errorf("PostgreSQL: %s (%s)", text, code)
}

// columns are the values of a row, in its bytes.
func columns(b []byte) (row [][]byte, _ error) {
	if len(b) < 2 {
		return nil, errShortRow
	}
	n := binary.BigEndian.Uint16(b)
	b = b[2:]
	for range n {
		if len(b) < 4 {
			return nil, errShortRow
		}
		size := binary.BigEndian.Uint32(b)
		b = b[4:]
		if size == 1<<32-1 { // null
			row = append(row, nil)
			continue
		}
		if uint64(size) > uint64(len(b)) {
			return nil, errShortRow
		}
		row = append(row, b[:size])
		b = b[size:]
	}
	return row, nil
}

var errShortRow = errors.New("PostgreSQL: a row that ends early")

// bigint reads a number of 8 bytes.
func bigint(b []byte) uint64 {
	if len(b) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(b)
}

func asBigint(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
