package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/sovereign-run/sovereign/refusal"
)

// CheckText returns an error that names the member if value, which is valid JSON, holds
// a string that is not UTF-8 or escapes half a surrogate pair: a decoder makes U+FFFD of
// both, and two idempotency keys that differ would become one. It returns nil for a
// reason and a progress, which are for people, and are taken whatever they hold.
func CheckText(value json.RawMessage) error {
	if utf8.Valid(value) && !bytes.Contains(value, []byte(`\u`)) {
		return nil
	}
	w := textWalk{in: value}
	w.value("", false)
	if w.wrong == "" {
		return nil
	}
	return errors.New(w.wrong)
}

// checkText is CheckText of params, as a refusal.
func checkText(method string, params json.RawMessage) error {
	if err := CheckText(params); err != nil {
		return refusal.New(refusal.BadRequest, "the params of "+Cut(method, 40)+" are wrong", err.Error(), nextProtocol)
	}
	return nil
}

// A textWalk goes through a JSON value for the first string that stands for no text.
type textWalk struct {
	in    []byte
	pos   int
	wrong string // what is wrong with it
}

// value goes past the value of the member called name. What stands in plain, as
// headers do, is named by its sender, and no name is special.
func (w *textWalk) value(name string, plain bool) {
	switch w.next() {
	case '{':
		w.each(func() {
			inner := w.text(name)
			w.next()
			w.pos++ // the colon
			w.value(inner, plain || strings.EqualFold(name, "headers"))
		})
	case '[':
		w.each(func() { w.value(name, plain) })
	case '"':
		if !plain && (strings.EqualFold(name, "reason") || strings.EqualFold(name, "progress")) {
			w.literal()
			return
		}
		w.text(name)
	default:
		for w.pos < len(w.in) && !bytes.ContainsRune([]byte(",]} \t\r\n"), rune(w.in[w.pos])) {
			w.pos++
		}
	}
}

// next skips white space and returns the byte behind it, 0 at the end.
func (w *textWalk) next() byte {
	s := scanner{in: w.in, pos: w.pos}
	c := s.space()
	w.pos = s.pos
	return c
}

// each calls member for each member of an object or a list.
func (w *textWalk) each(member func()) {
	w.pos++
	for w.wrong == "" {
		switch w.next() {
		case '}', ']':
			w.pos++
			return
		case 0:
			return
		case ',':
			w.pos++
		default:
			member()
		}
	}
}

// literal goes past a string and returns what stands between its quotes.
func (w *textWalk) literal() []byte {
	s := scanner{in: w.in, pos: w.pos}
	s.skipString()
	start := w.pos + 1
	if s.bad {
		w.pos = len(w.in)
		return nil
	}
	w.pos = s.pos
	return w.in[start : s.pos-1]
}

// text is what a string stands for; of one that stands for nothing it is wrong.
func (w *textWalk) text(name string) string {
	inner := w.literal()
	s := scanner{in: w.in}
	out := s.unescape(make([]byte, 0, len(inner)), inner)
	if name == "" {
		name = "a name"
	}
	switch {
	case !utf8.Valid(inner):
		w.wrong = Cut(name, 40) + " must be UTF-8, and holds bytes that are not"
	case s.bad:
		w.wrong = Cut(name, 40) + " must be UTF-8, and escapes half a surrogate pair"
	}
	return string(out)
}
