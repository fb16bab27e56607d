package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sovereign-run/sovereign/config"
)

// A span is a duration on the command line, written as in actors.yaml: with
// units, days too.
type span time.Duration

func (s *span) String() string {
	if *s == 0 {
		return ""
	}
	return config.FormatDuration(time.Duration(*s))
}

func (s *span) Set(text string) error {
	d, err := config.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("%w; write it with a unit, as in 30s, 10m, 24h or 7d", err)
	}
	*s = span(d)
	return nil
}

func (s *span) Type() string { return "duration" }

// An instant is a time on the command line: RFC 3339, or local without a zone.
type instant struct{ time.Time }

func (i *instant) String() string {
	if i.IsZero() {
		return ""
	}
	return i.Format(time.RFC3339)
}

func (i *instant) Set(text string) error {
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		i.Time = t
		return nil
	}
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			i.Time = t
			return nil
		}
	}
	return errors.New("is no time; write it as 2026-03-01T08:30:00Z, or as 2026-03-01 08:30 for local time")
}

func (i *instant) Type() string { return "time" }

// A token is a fencing token on the command line.
type token uint64

func (t *token) String() string {
	if *t == 0 {
		return ""
	}
	return strconv.FormatUint(uint64(*t), 10)
}

func (t *token) Set(text string) error {
	n, err := strconv.ParseUint(text, 10, 53)
	if err != nil {
		return errors.New("is no token; a token is a decimal number below 2^53")
	}
	*t = token(n)
	return nil
}

func (t *token) Type() string { return "token" }

// headers are k=v pairs; a key given twice is refused rather than overwritten.
type headers map[string]string

func (h headers) String() string { return "" }

func (h headers) Set(text string) error {
	key, value, found := strings.Cut(text, "=")
	if !found || key == "" {
		return errors.New("is no header; write it as key=value")
	}
	if _, twice := h[key]; twice {
		return fmt.Errorf("gives %q for the second time", key)
	}
	h[key] = value
	return nil
}

func (h headers) Type() string { return "key=value" }
