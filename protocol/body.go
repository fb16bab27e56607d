package protocol

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// A Body is the content of a message or a result: any bytes. On the wire it is
// a string where IsText says so, and {"base64": "…"} where not.
type Body []byte

// IsText says whether b goes over the wire as a string: it is UTF-8, and its
// escapes do not make it more than twice as long as base64 would. A string of
// control characters takes six bytes for each, and the largest body would not go
// into a line.
func IsText(b []byte) bool {
	return plainLen(b) == len(b) || escapedLen(b) <= 2*base64.StdEncoding.EncodedLen(len(b)) && utf8.Valid(b)
}

// escapedLen is how long AppendString makes b, without the quotes.
func escapedLen(b []byte) int {
	n := len(b)
	for i := plainLen(b); i < len(b); i += plainLen(b[i:]) {
		switch c := b[i]; {
		case c == 0xE2 && (bytes.HasPrefix(b[i:], []byte("\u2028")) || bytes.HasPrefix(b[i:], []byte("\u2029"))):
			n += len(`\u2028`) - len("\u2028")
		case c >= utf8.RuneSelf:
		case c == '"', c == '\\', c == '\n', c == '\r', c == '\t':
			n++
		default:
			n += len(`\u0000`) - 1
		}
		i++
	}
	return n
}

// MarshalJSON chooses the form by content.
func (b Body) MarshalJSON() ([]byte, error) { return b.append(make([]byte, 0, len(b)+2)), nil }

// append chooses the form by content.
func (b Body) append(dst []byte) []byte {
	if IsText(b) {
		return appendString(dst, b)
	}
	const head, tail = `{"base64":"`, `"}`
	dst = slices.Grow(dst, len(head)+base64.StdEncoding.EncodedLen(len(b))+len(tail))
	dst = append(dst, head...)
	dst = base64.StdEncoding.AppendEncode(dst, b)
	return append(dst, tail...)
}

// UnmarshalJSON reads both forms. A string that is not UTF-8, or escapes half
// a surrogate pair, is refused: what was meant by it cannot be known.
func (b *Body) UnmarshalJSON(in []byte) error {
	wrong := func(what string) error {
		return &json.UnmarshalTypeError{Value: what, Type: reflect.TypeFor[Body]()}
	}
	switch in[0] {
	case 'n':
		return nil
	case '"':
		if !utf8.Valid(in) {
			return wrong("string that is not UTF-8")
		}
		var s string
		if err := json.Unmarshal(in, &s); err != nil {
			return err
		}
		// The decoder turns half a pair into U+FFFD, which the text then holds
		// more often than the line does.
		if n := strings.Count(s, "\uFFFD"); n > 0 && n > replacements(in) {
			return wrong("string with half a surrogate pair")
		}
		*b = Body(s)
		return nil
	case '{':
		var o struct {
			Base64 *string `json:"base64"`
		}
		if err := json.Unmarshal(in, &o); err != nil {
			if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
				return wrong("object whose base64 is no string")
			}
			return err
		}
		if o.Base64 == nil {
			return wrong("object without base64")
		}
		raw, err := base64.StdEncoding.DecodeString(*o.Base64)
		if err != nil {
			return wrong("object whose base64 is not base64")
		}
		*b = raw
		return nil
	}
	return wrong(kindOf(in))
}

// replacements counts the U+FFFD that a string literal itself holds, written
// out or as an escape.
func replacements(literal []byte) (n int) {
	n = strings.Count(string(literal), "\uFFFD")
	for i := 0; i+1 < len(literal); i++ {
		if literal[i] != '\\' {
			continue
		}
		if literal[i+1] == 'u' && i+6 <= len(literal) && strings.EqualFold(string(literal[i+2:i+6]), "fffd") {
			n++
		}
		i++ // the escaped character is no start of an escape
	}
	return n
}

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string. Bytes that are not UTF-8 become
// U+FFFD.
func AppendString(dst []byte, s string) []byte { return appendString(dst, []byte(s)) }

// appendString is AppendString of bytes. It changes none of them, so the conversion
// to them above copies nothing.
func appendString(dst, s []byte) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		n := plainLen(s[i:])
		dst = append(dst, s[i:i+n]...)
		if i += n; i == len(s) {
			break
		}
		switch c := s[i]; {
		case c >= utf8.RuneSelf:
			r, size := utf8.DecodeRune(s[i:])
			switch {
			case r == utf8.RuneError && size == 1:
				dst = append(dst, `\ufffd`...)
			case r == '\u2028' || r == '\u2029':
				// A separator of JavaScript's is escaped, as encoding/json does, and
				// the same bytes come out whichever of the two wrote them.
				dst = append(dst, `\u202`...)
				dst = append(dst, hexDigits[r&0xF])
			default:
				dst = append(dst, s[i:i+size]...)
			}
			i += size
			continue
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\r':
			dst = append(dst, '\\', 'r')
		case c == '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xF])
		}
		i++
	}
	return append(dst, '"')
}
