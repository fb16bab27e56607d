package mailbox

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"time"

	"github.com/sovereign-run/sovereign/protocol"
)

// Content is what a message says: written once, when it is sent.
type content struct {
	from      string
	subject   string
	headers   map[string]string
	key       string
	group     string
	createdAt time.Time
	ttl       time.Duration
	body      []byte
}

const contentVersion = 1

func (c *content) encode() []byte {
	size := 48 + len(c.from) + len(c.subject) + len(c.key) + len(c.group) + len(c.body)
	for k, v := range c.headers {
		size += len(k) + len(v) + 6
	}
	e := newEncoder(nil, contentVersion, size)
	e.string(c.from)
	e.string(c.subject)
	e.uint(uint64(len(c.headers)))
	for _, k := range sortedKeys(c.headers) {
		e.string(k)
		e.string(c.headers[k])
	}
	e.string(c.key)
	e.string(c.group)
	e.time(c.createdAt)
	e.int(int64(c.ttl))
	e.bytes(c.body)
	return e.seal()
}

// decodeContent reads the content of message id; all is copied.
func decodeContent(id ID, b []byte) (*content, error) {
	what := named{"the content of message", id}
	if b == nil {
		return nil, corrupt(what, "it is missing")
	}
	d, err := unseal(b, contentVersion, what)
	if err != nil {
		return nil, err
	}
	c := &content{from: d.string(), subject: d.string()}
	n := d.uint()
	if n > uint64(len(d.b)) {
		d.fail()
		n = 0
	}
	if n > 0 {
		c.headers = make(map[string]string, n)
	}
	for range n {
		k := d.string()
		c.headers[k] = d.string()
	}
	c.key = d.string()
	c.group = d.string()
	c.createdAt = d.time()
	c.ttl = time.Duration(d.int())
	c.body = append([]byte{}, d.bytes()...)
	return c, d.done(what)
}

// A heading is what lists look at of a content. It is valid as long as the record.
type heading struct {
	from, subject []byte
	createdAt     time.Time
}

// glance reads the heading of message id, and copies nothing. It succeeds where
// decodeContent does.
func glance(id ID, b []byte) (h heading, err error) {
	what := named{"the content of message", id}
	if b == nil {
		return h, corrupt(what, "it is missing")
	}
	d, err := unseal(b, contentVersion, what)
	if err != nil {
		return h, err
	}
	h.from, h.subject = d.bytes(), d.bytes()
	for n := d.uint(); n > 0 && !d.bad; n-- {
		d.bytes()
		d.bytes()
	}
	d.bytes() // key
	d.bytes() // group
	h.createdAt = d.time()
	d.int() // ttl
	d.bytes()
	return h, d.done(what)
}

// fingerprint tells whether two sends under one key say the same. It covers
// what the receiver sees: sender, subject, headers, group, priority, body; but not the
// header with the id that it had in another store, so that who sends it once more does not
// say something else for its having been moved.
func (c *content) fingerprint(priority int) [16]byte {
	h := sha256.New()
	part := func(s []byte) {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		h.Write(s)
	}
	part([]byte(c.from))
	part([]byte(c.subject))
	for _, k := range sortedKeys(c.headers) {
		if k == protocol.HeaderImportedID {
			continue
		}
		part([]byte(k))
		part([]byte(c.headers[k]))
	}
	part([]byte(c.group))
	part(binary.AppendVarint(nil, int64(priority)))
	part(c.body)
	return [16]byte(h.Sum(nil))
}

func sortedKeys(m map[string]string) []string {
	if len(m) == 0 {
		return nil
	}
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
