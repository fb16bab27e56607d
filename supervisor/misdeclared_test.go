package supervisor_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/supervisor"
)

// A start that fails for what actors.yaml names is said in the log each time, and what is to be
// done about it is to correct that: a restart would fail the same way. Have spawn say
// nothing, or advise a restart, and this fails.
func TestStatus_SaysToCorrectWhatCannotBeStarted(t *testing.T) {
	slow := func(a *config.Actor) { a.Backoff.Initial, a.Backoff.Max = time.Hour, time.Hour }
	w := run(t,
		shell("user", config.Daemon, "exec sleep 1000", slow, func(a *config.Actor) { a.User = "nosuch-user" }),
		shell("command", config.Daemon, "", slow, func(a *config.Actor) { a.Command = []string{"/nonexistent/program"} }),
		shell("ends", config.Daemon, "exit 3", slow))
	for actor, want := range map[string]string{"user": "nosuch-user", "command": "ENOENT"} {
		got := w.slot(actor, "backoff", func(s supervisor.SlotStatus) bool { return s.State == "backoff" })
		if !strings.Contains(got.Next, "actors.yaml") || !strings.Contains(got.Next, "sovereign reload") || !strings.Contains(got.Why, want) {
			t.Errorf("%s: it says %q, next %q", actor, got.Why, got.Next)
		}
		if line := w.line("process not started", "actor="+actor); !strings.Contains(line, "level=WARN") || !strings.Contains(line, want) {
			t.Errorf("%s: the log says %q", actor, line)
		}
	}
	if got := w.state("ends", "backoff").Next; got != "sovereign restart ends" {
		t.Errorf("of one that was started and ended: next %q", got)
	}
}

// line is the first line of the log with all of words; "" = there is none.
func (w *world) line(words ...string) string {
	for line := range strings.Lines(w.log.String()) {
		all := true
		for _, word := range words {
			all = all && strings.Contains(line, word)
		}
		if all {
			return line
		}
	}
	return ""
}
