package protocol

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// literal reads a string and returns what stands between its quotes: valid JSON
// and UTF-8. It is part of the line.
func (s *scanner) literal() (inner []byte, escaped bool) {
	s.space()
	start := s.pos + 1
	escaped, ascii := s.skipString()
	if s.bad {
		return nil, false
	}
	inner = s.in[start : s.pos-1]
	if !ascii && !utf8.Valid(inner) {
		s.bad = true
	}
	return inner, escaped
}

// skipString goes past a string, whatever its bytes are.
func (s *scanner) skipString() (escaped, ascii bool) {
	ascii = true
	if s.bad || s.space() != '"' {
		s.bad = true
		return false, false
	}
	i := s.pos + 1
	for {
		i += plainLen(s.in[i:])
		if i >= len(s.in) {
			break
		}
		switch c := s.in[i]; {
		case c == '"':
			s.pos = i + 1
			return escaped, ascii
		case c >= utf8.RuneSelf:
			ascii = false
			i++
		case c == '\\':
			escaped = true
			n := escapeLen(s.in[i:])
			if n == 0 {
				s.bad = true
				return escaped, ascii
			}
			i += n
		default:
			s.bad = true
			return escaped, ascii
		}
	}
	s.bad = true
	return escaped, ascii
}

// escapeLen is the length of the escape that b begins with, 0 where it is none.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if _, ok := hex4(b); ok {
			return 6
		}
	}
	return 0
}

// hex4 reads \uXXXX.
func hex4(b []byte) (r rune, ok bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	for _, c := range b[2:6] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// plainLen is how many bytes b begins with that stand for themselves in a JSON
// string: ASCII, no control character, no quote, no backslash. It looks at eight
// at a time.
func plainLen(b []byte) int {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		// A byte's high bit is set in what follows where the byte has it, or the
		// subtraction borrowed; a borrow reaches only bytes behind such a one.
		if stop := (w | (w - ones*' ') | ((w ^ ones*'"') - ones) | ((w ^ ones*'\\') - ones)) & high; stop != 0 {
			return i + bits.TrailingZeros64(stop)/8
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			break
		}
	}
	return i
}

// unescape appends what a literal stands for. Half a surrogate pair, which stands
// for nothing, makes s bad.
func (s *scanner) unescape(dst, literal []byte) []byte {
	for i := 0; i < len(literal); {
		c := literal[i]
		if c != '\\' {
			n := max(1, plainLen(literal[i:]))
			dst = append(dst, literal[i:i+n]...)
			i += n
			continue
		}
		i += 2
		switch c = literal[i-1]; c {
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		case 'u':
			r, _ := hex4(literal[i-2:])
			i += 4
			if utf16.IsSurrogate(r) {
				second, _ := hex4(literal[i:])
				if r = utf16.DecodeRune(r, second); r == utf8.RuneError {
					s.bad = true
					return dst
				}
				i += 6
			}
			dst = utf8.AppendRune(dst, r)
			continue
		}
		dst = append(dst, c)
	}
	return dst
}

// text reads a string. The result is a copy.
func (s *scanner) text() string {
	inner, escaped := s.literal()
	if escaped {
		inner = s.unescape(make([]byte, 0, len(inner)), inner)
	}
	return string(inner)
}
