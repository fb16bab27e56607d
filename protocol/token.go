package protocol

import (
	"encoding/json"
	"reflect"
	"strconv"
)

// MaxToken is the greatest token: one below 2^53, so that a program whose only
// numbers are floating point carries every token exactly.
const MaxToken Token = 1<<53 - 1

// A Token is a fencing token on the wire: a JSON number. A string of decimal
// digits, as the environment holds it, is read as well. Absent, null, "" and 0
// are all the zero token, which fences nothing and is never current. A
// negative number, a fraction, an exponent and what exceeds MaxToken are no
// tokens.
type Token uint64

// UnmarshalJSON refuses what is no token.
func (t *Token) UnmarshalJSON(b []byte) error {
	digits := b
	switch {
	case string(b) == "null":
		return nil
	case len(b) >= 2 && b[0] == '"':
		digits = b[1 : len(b)-1]
		if len(digits) == 0 {
			*t = 0
			return nil
		}
	}
	n, ok := decimal(digits)
	if !ok {
		return &json.UnmarshalTypeError{Value: kindOf(b) + " " + Cut(string(b), 40), Type: reflect.TypeFor[Token]()}
	}
	*t = Token(n)
	return nil
}

func (t Token) String() string { return strconv.FormatUint(uint64(t), 10) }

// decimal reads digits alone, up to MaxToken.
func decimal(digits []byte) (n uint64, ok bool) {
	if len(digits) == 0 || len(digits) > 16 {
		return 0, false
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return n, n <= uint64(MaxToken)
}
