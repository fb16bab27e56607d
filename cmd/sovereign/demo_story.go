package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/sovereign-run/sovereign/protocol"
)

// demoWidth is how wide what the demonstration prints is at most.
const demoWidth = 80

// A demoStory tells what happens, a line each: what the demonstration does, what
// the journal says, and what a worker was answered. With json it is silent.
type demoStory struct {
	out    io.Writer
	json   bool
	colour bool
	began  time.Time
	names  map[string]string // of messages: their orders
}

const (
	demoBold  = "1"
	demoDim   = "2"
	demoRed   = "31"
	demoGreen = "32"
)

func (s *demoStory) paint(style, text string) string {
	if !s.colour || style == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

func (s *demoStory) title() {
	if s.json {
		return
	}
	fmt.Fprint(s.out, "Six orders go from pack to label to mail, while workers and supervisor are\n"+
		"killed and frozen. Everything below is real: processes, signals, store.\n\n")
}

func (s *demoStory) line(at time.Time, who, style, text string) {
	if s.json {
		return
	}
	text = cutTo(fmt.Sprintf("%5.1fs  %-7s  %s", max(0, at.Sub(s.began).Seconds()), who, printable(text)), demoWidth)
	fmt.Fprintln(s.out, s.paint(style, text))
}

// act tells what the demonstration does.
func (s *demoStory) act(text string) { s.line(time.Now(), "demo", demoBold, text) }

// refusal tells what a worker was answered that came too late.
func (s *demoStory) refusal(r demoReport) {
	s.line(time.Now(), "worker", demoRed, fmt.Sprintf("%s/%s is refused: %s, token %d", r.Actor, r.Slot, r.Category, r.Token))
}

// event tells what the journal says, where it belongs to the story.
func (s *demoStory) event(e protocol.Event) {
	style, text := "", ""
	where := fmt.Sprintf("%s/%d", e.Actor, e.Slot)
	what := s.names[e.Message]
	if what == "" {
		what = e.Message
	}
	switch e.Kind {
	case protocol.EventStarted:
		style, text = demoDim, fmt.Sprintf("%s started, lease token %d", where, e.Token)
	case protocol.EventReady, protocol.EventRestarting, protocol.EventStopped:
		return
	case protocol.EventRecovered:
		text = where + " recovered: what its process held is free again"
	case protocol.EventCompleted:
		style, text = demoGreen, fmt.Sprintf("%s: %s completed, attempt %d, token %d", where, what, e.Attempt, e.Token)
	case protocol.EventFailed, protocol.EventReleased, protocol.EventParked, protocol.EventDead, protocol.EventStaleCompletion:
		style, text = demoRed, fmt.Sprintf("%s: %s, attempt %d %s: %s, token %d", where, what, e.Attempt, e.Kind, e.Category, e.Token)
	default:
		words := []string{string(e.Kind)}
		if e.Actor != "" {
			words = []string{where, string(e.Kind)}
		}
		if e.Text != "" {
			words[len(words)-1] += ":"
			words = append(words, e.Text)
		}
		text = strings.Join(words, " ")
	}
	s.line(e.At, "journal", style, text)
}

// verdict shows what became of every message, whether the guarantees held, and
// what to try next.
func (s *demoStory) verdict(v demoVerdict) error {
	fmt.Fprint(s.out, "\nWhat is in the store, read after everything has ended:\n\n")
	t := table{columns: []column{{name: "MESSAGE"}, {name: "TO"}, {name: "ORDER", gives: 1}, {name: "STATE"},
		{name: "RECEIPTS", gives: 2}, {name: "FOLLOW-UP", gives: 1}}}
	for _, m := range v.Messages {
		t.add(m.ID, m.To, m.Order, m.State, strings.Join(m.Receipts, ", "), strings.Join(m.FollowUps, " "))
	}
	if err := t.write(s.out, demoWidth); err != nil {
		return err
	}
	fmt.Fprintln(s.out)
	for _, c := range v.Checks {
		mark := s.paint(demoGreen, "ok  ")
		if !c.OK {
			mark = s.paint(demoRed, "FAIL")
		}
		fmt.Fprintf(s.out, "%s  %s\n", mark, c.Name)
		for _, p := range c.Problems {
			fmt.Fprintf(s.out, "      %s\n", cutTo(printable(p), demoWidth-6))
		}
	}
	if !v.OK {
		_, err := fmt.Fprint(s.out, "\nThe guarantees did not hold. Run it with --keep, and report what it shows.\n")
		return err
	}
	_, err := fmt.Fprintf(s.out, "\nAll held, in %.1f s. Try next:\n"+
		"  sovereign demo --keep          and look around in the folder\n"+
		"  sovereign init greeter         a small fleet of your own\n"+
		"  sovereign run --help\n", v.Seconds)
	return err
}
