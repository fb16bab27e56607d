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

// An instant is a time on the command line: RFC 3339, or local without a zone, or a time of
// day, which is the next such one.
type instant struct {
	time.Time
	next bool // it was given as a time of day
}

func (i *instant) String() string {
	if i.IsZero() {
		return ""
	}
	return i.Format(time.RFC3339)
}

func (i *instant) Set(text string) error {
	i.next = false // of the flag that is given twice the last counts
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		if _, err := t.MarshalText(); err == nil { // a zone a whole day off can be read, not written
			i.Time = t
			return nil
		}
	}
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			i.Time = t
			return nil
		}
	}
	var there bool
	if i.Time, there = nextClock(text, time.Now().Local()); there {
		i.next = true
		return nil
	}
	return errors.New("is no time; write it as 2026-03-01T08:30:00Z, as 2026-03-01 08:30 for local time, or as 08:30 for the next such time")
}

// nextClock is the first time after now at which clocks in now's zone show the time of day
// in text: one that is skipped on a day, as summer time begins, is the next day's, and of one
// that comes twice, as it ends, it is the one that comes first. false: text is none.
func nextClock(text string, now time.Time) (next time.Time, is bool) {
	clock, err := time.Parse("15:04", text)
	if err != nil {
		clock, err = time.Parse("15:04:05", text)
	}
	if err != nil || clock.Nanosecond() != 0 {
		return next, false
	}
	const most = time.Hour // by which any zone's clocks are set; Lord Howe's by half of it
	for day := 0; next.IsZero() && day < 7; day++ {
		about := time.Date(now.Year(), now.Month(), now.Day()+day, clock.Hour(), clock.Minute(), clock.Second(), 0, now.Location())
		for shift := most; shift >= -most; shift -= most / 2 { // the earliest is the last that fits
			at := about.Add(shift)
			if at.After(now) && at.Format(time.TimeOnly) == clock.Format(time.TimeOnly) {
				next = at
			}
		}
	}
	return next, true
}

func (i *instant) Type() string { return "time" }

// A filled is text on the command line that says which one, or what it is to be. One that
// is given and empty, as by a variable that is not set, is refused: it would be as if the
// flag were not there, and all be chosen, another one meant, a send not be repeatable, or
// an empty body or result be taken in place of a file's.
type filled string

func (t *filled) String() string { return string(*t) }

func (t *filled) Set(text string) error {
	if text == "" {
		return errors.New("is empty; give it a value, or leave the flag out")
	}
	*t = filled(text)
	return nil
}

func (t *filled) Type() string { return "string" }

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
