package protocol

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// A Duration is a span of time on the wire: a string with units, "10s",
// "1h30m", "7d". The number 0 is read as well. Negative spans are refused.
type Duration time.Duration

// Std is d as the standard library knows it.
func (d Duration) Std() time.Duration { return time.Duration(d) }

func (d Duration) String() string { return time.Duration(d).String() }

// MarshalJSON writes the string form.
func (d Duration) MarshalJSON() ([]byte, error) {
	return strconv.AppendQuote(nil, time.Duration(d).String()), nil
}

// UnmarshalJSON refuses what is no span of time.
func (d *Duration) UnmarshalJSON(b []byte) error {
	switch {
	case string(b) == "null":
		return nil
	case string(b) == "0":
		*d = 0
		return nil
	}
	var s string
	if b[0] == '"' && json.Unmarshal(b, &s) == nil {
		if v, ok := ParseDuration(s); ok {
			*d = Duration(v)
			return nil
		}
	}
	return &json.UnmarshalTypeError{Value: kindOf(b) + " " + Cut(string(b), 40), Type: reflect.TypeFor[Duration]()}
}

// ParseDuration reads Go's notation, and whole days as in "7d". ok is false
// for what is neither, or negative.
func ParseDuration(s string) (d time.Duration, ok bool) {
	if days, found := strings.CutSuffix(s, "d"); found {
		n, err := strconv.ParseUint(days, 10, 31)
		if err != nil || n > 100_000 {
			return 0, false
		}
		return time.Duration(n) * 24 * time.Hour, true
	}
	d, err := time.ParseDuration(s)
	return d, err == nil && d >= 0
}
