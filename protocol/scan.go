package protocol

import (
	"encoding/base64"
	"time"
)

// A scanner reads the JSON of requests as clients write them, without reflection
// and without scanning anything more than it must: encoding/json went over each
// line four times and over a body six times, which was an eighth of the
// supervisor's CPU. It knows the plain form only: members by their exact names,
// each once, values of the types that are wanted. Whatever else it meets, an error
// or a form that is merely rare, makes it bad, and the line is read by encoding/json
// from its beginning: that one decides what is an error, and words it. Where the
// scanner is not bad at the end it has read what encoding/json would have
// (FuzzScan_AgreesWithJSON).
type scanner struct {
	in  []byte
	pos int
	bad bool
}

// space skips white space and returns the next byte, 0 at the end.
func (s *scanner) space() byte {
	for s.pos < len(s.in) {
		switch c := s.in[s.pos]; c {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return c
		}
	}
	return 0
}

// giveUp makes s bad. It returns false, which ends the loops over members.
func (s *scanner) giveUp() bool {
	s.bad = true
	return false
}

// end reports whether s is not bad and nothing but white space is left.
func (s *scanner) end() bool {
	return s.space() == 0 && s.pos == len(s.in) && !s.bad
}

// open enters an object or a list, whose first byte is given, and reports whether
// there is something in it.
func (s *scanner) open(first byte) bool {
	if s.bad || s.space() != first {
		return s.giveUp()
	}
	s.pos++
	if s.space() == first+2 { // '}' is '{'+2, and ']' is '['+2
		s.pos++
		return false
	}
	return true
}

// more follows a member of what begins with first, and reports whether another
// one comes.
func (s *scanner) more(first byte) bool {
	if s.bad {
		return false
	}
	switch s.space() {
	case ',':
		s.pos++
		return true
	case first + 2:
		s.pos++
		return false
	}
	return s.giveUp()
}

// key reads a member's name and the colon behind it. The result is part of the
// line.
func (s *scanner) key() []byte {
	name, escaped := s.literal()
	s.colon()
	if escaped {
		s.bad = true
	}
	return name
}

func (s *scanner) colon() {
	if s.space() != ':' {
		s.bad = true
		return
	}
	s.pos++
}

// A seen holds which members of an object have been read.
type seen uint32

// once makes s bad where member i was there before: of members with one name
// encoding/json takes the last, and merges some.
func (s *scanner) once(members *seen, i uint) {
	if *members&(1<<i) != 0 {
		s.bad = true
	}
	*members |= 1 << i
}

// body reads both forms of a body. The result may be part of the line.
func (s *scanner) body() Body {
	if s.space() != '{' {
		inner, escaped := s.literal()
		if escaped {
			inner = s.unescape(make([]byte, 0, len(inner)), inner)
		}
		return inner[:len(inner):len(inner)]
	}
	if !s.open('{') || string(s.key()) != "base64" {
		s.bad = true
		return nil
	}
	inner, escaped := s.literal()
	raw := make([]byte, base64.StdEncoding.DecodedLen(len(inner)))
	n, err := base64.StdEncoding.Decode(raw, inner)
	if escaped || err != nil || s.more('{') {
		s.bad = true
	}
	return raw[:n]
}

// digits reads a number without sign, fraction and exponent, of at most 16 digits.
func (s *scanner) digits() (n uint64) {
	s.space()
	start := s.pos
	for ; s.pos < len(s.in) && s.in[s.pos] >= '0' && s.in[s.pos] <= '9'; s.pos++ {
		n = n*10 + uint64(s.in[s.pos]-'0')
	}
	switch count := s.pos - start; {
	case count == 0, count > 16, count > 1 && s.in[start] == '0':
		s.bad = true
	case s.pos < len(s.in) && (s.in[s.pos] == '.' || s.in[s.pos] == 'e' || s.in[s.pos] == 'E'):
		s.bad = true
	}
	return n
}

// int reads a whole number.
func (s *scanner) int() int {
	negative := s.space() == '-'
	if negative {
		s.pos++
		if s.pos == len(s.in) || s.in[s.pos] == '0' {
			s.bad = true
		}
	}
	n := int64(s.digits())
	if negative {
		n = -n
	}
	if int64(int(n)) != n {
		s.bad = true
	}
	return int(n)
}

func (s *scanner) bool() bool {
	s.space()
	rest := s.in[s.pos:]
	switch {
	case len(rest) >= 4 && string(rest[:4]) == "true":
		s.pos += 4
		return true
	case len(rest) >= 5 && string(rest[:5]) == "false":
		s.pos += 5
		return false
	}
	return s.giveUp()
}

func (s *scanner) token() Token {
	n := uint64(0)
	if s.space() == '"' {
		inner, _ := s.literal()
		if len(inner) > 0 {
			var ok bool
			if n, ok = decimal(inner); !ok {
				s.bad = true
			}
		}
	} else if n = s.digits(); n > uint64(MaxToken) {
		s.bad = true
	}
	return Token(n)
}

func (s *scanner) duration() Duration {
	inner, escaped := s.literal()
	if escaped {
		inner = s.unescape(nil, inner)
	}
	d, ok := ParseDuration(string(inner))
	if !ok {
		s.bad = true
	}
	return Duration(d)
}

func (s *scanner) time() (t time.Time) {
	s.space()
	start := s.pos
	if _, escaped := s.literal(); escaped || s.bad || t.UnmarshalJSON(s.in[start:s.pos]) != nil {
		s.bad = true
	}
	return t
}

func (s *scanner) texts() map[string]string {
	m := map[string]string{}
	for more := s.open('{'); more; more = s.more('{') {
		name := s.text()
		s.colon()
		m[name] = s.text()
	}
	return m
}

// maxDepth is how deep skip follows values in one another; what is deeper is rare.
const maxDepth = 32

// skip goes past a value and makes sure that it is one.
func (s *scanner) skip(depth int) {
	switch c := s.space(); {
	case s.bad || depth > maxDepth:
		s.bad = true
	case c == '"':
		s.skipString()
	case c == '{':
		for more := s.open(c); more; more = s.more(c) {
			s.skipString()
			s.colon()
			s.skip(depth + 1)
		}
	case c == '[':
		for more := s.open(c); more; more = s.more(c) {
			s.skip(depth + 1)
		}
	case c == 't', c == 'f':
		s.bool()
	case c == '-', c >= '0' && c <= '9':
		s.int()
	default:
		s.bad = true
	}
}
