package supervisor

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// What a datagram says: nothing but whole lines of the names that are heeded, with
// the values that have a meaning.
func TestParseNotice(t *testing.T) {
	for text, want := range map[string]notice{
		"READY=1":                             {ready: true},
		"READY=0":                             {},
		"READY=1\n":                           {ready: true},
		"STATUS=a=b":                          {says: true, status: "a=b"},
		"STATUS=":                             {says: true},
		"XREADY=1\nready=1\n READY=1":         {},
		"STOPPING=1\nSTATUS=bye":              {stopping: true, says: true, status: "bye"},
		"RELOADING=1\nMONOTONIC_USEC=1":       {reloading: true},
		"WATCHDOG=1":                          {alive: true},
		"WATCHDOG=trigger":                    {trigger: true},
		"MAINPID=1\nFDSTORE=1\nBARRIER=1":     {},
		"EXTEND_TIMEOUT_USEC=1\nERRNO=2\nodd": {},
	} {
		if got, ok := parseNotice([]byte(text)); !ok || got != want {
			t.Errorf("%q: %+v, %v; want %+v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "READY=1\x00", "\x00"} {
		if got, ok := parseNotice([]byte(text)); ok || got != (notice{}) {
			t.Errorf("%q was taken for %+v", text, got)
		}
	}
}

// Whatever a child sends, what is shown of it is short, valid text.
func FuzzParseNotice(f *testing.F) {
	f.Add([]byte("READY=1\nSTATUS=hello"))
	f.Add([]byte("STATUS=" + strings.Repeat("ä", 300)))
	f.Add([]byte("STATUS=\xff\xfe" + strings.Repeat("\xe2\x82", 200)))
	f.Fuzz(func(t *testing.T, b []byte) {
		n, ok := parseNotice(b)
		if !ok && n != (notice{}) {
			t.Errorf("what is not taken says %+v", n)
		}
		if len(n.status) > maxStatus || !utf8.ValidString(n.status) || strings.ContainsAny(n.status, "\n\x00") {
			t.Errorf("status %q", n.status)
		}
	})
}

// What is said of a reload ends with READY, what is said of the end stays.
func TestWord_After(t *testing.T) {
	var w word
	for _, step := range []struct {
		notice
		want word
	}{
		{notice{ready: true, says: true, status: "up"}, word{Status: "up"}},
		{notice{reloading: true}, word{Status: "up", Reloading: true}},
		{notice{alive: true}, word{Status: "up", Reloading: true}},
		{notice{ready: true}, word{Status: "up"}},
		{notice{reloading: true}, word{Status: "up", Reloading: true}},
		{notice{stopping: true, says: true, status: "bye"}, word{Status: "bye", Stopping: true}},
		{notice{ready: true}, word{Status: "bye", Stopping: true}},
	} {
		if w = w.after(step.notice); w != step.want {
			t.Errorf("after %+v: %+v, want %+v", step.notice, w, step.want)
		}
	}
}
