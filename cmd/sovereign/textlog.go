package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
)

// A textLog writes log records for people: the time, the level where it is not
// the usual one, the message, and key=value pairs.
type textLog struct {
	level  slog.Level
	colour bool
	attrs  string // given by With, written already
	group  string // prefix of the keys to come

	mu *sync.Mutex // guards w
	w  io.Writer
}

func newTextLog(w io.Writer, level slog.Level, colour bool) *textLog {
	return &textLog{level: level, colour: colour, mu: &sync.Mutex{}, w: w}
}

// Enabled implements slog.Handler.
func (t *textLog) Enabled(_ context.Context, level slog.Level) bool { return level >= t.level }

// Handle implements slog.Handler.
func (t *textLog) Handle(_ context.Context, r slog.Record) error {
	var b bytes.Buffer
	before, after := "", ""
	if t.colour {
		before, after = levelColour(r.Level), "\x1b[0m"
	}
	fmt.Fprintf(&b, "%s%s %-5s %s%s", before, r.Time.Local().Format("15:04:05.000"), r.Level, r.Message, after)
	b.WriteString(t.attrs)
	r.Attrs(func(a slog.Attr) bool {
		writeAttr(&b, t.group, a)
		return true
	})
	b.WriteByte('\n')
	t.mu.Lock()
	defer t.mu.Unlock()
	_, err := t.w.Write(b.Bytes())
	return err
}

func levelColour(l slog.Level) string {
	switch {
	case l >= slog.LevelError:
		return "\x1b[31m"
	case l >= slog.LevelWarn:
		return "\x1b[33m"
	default:
		return "\x1b[2m"
	}
}

// WithAttrs implements slog.Handler.
func (t *textLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	var b bytes.Buffer
	b.WriteString(t.attrs)
	for _, a := range attrs {
		writeAttr(&b, t.group, a)
	}
	c := *t
	c.attrs = b.String()
	return &c
}

// WithGroup implements slog.Handler.
func (t *textLog) WithGroup(name string) slog.Handler {
	c := *t
	c.group += name + "."
	return &c
}

func writeAttr(b *bytes.Buffer, group string, a slog.Attr) {
	value := a.Value.Resolve()
	if value.Kind() == slog.KindTime { // to the second, in local time, as everything here
		value = slog.StringValue(value.Time().Local().Format("2006-01-02 15:04:05"))
	}
	if value.Kind() == slog.KindGroup {
		for _, inner := range value.Group() {
			writeAttr(b, group+a.Key+".", inner)
		}
		return
	}
	text := printable(value.String())
	if text == "" || strings.ContainsAny(text, " \"=") {
		text = strconv.Quote(value.String())
	}
	fmt.Fprintf(b, " %s%s=%s", group, a.Key, text)
}
