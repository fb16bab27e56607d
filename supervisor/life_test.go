package supervisor

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// These tests are inside the package: the table is not exported.

// The table has a cell for every state and event, and each leads to a state.
// Remove a cell and this fails.
func TestTable(t *testing.T) {
	for s := stopped; int(s) < numStates; s++ {
		for e := start; int(e) < numEvents; e++ {
			cell := table[s][e]
			if cell.to == 0 || cell.do == 0 {
				t.Errorf("%s × %s has no cell", s, e)
			}
			if cell.do == never && cell.to != s {
				t.Errorf("%s × %s cannot happen, and leads to %s", s, e, cell.to)
			}
		}
	}
	for s := stopped; int(s) < numStates; s++ {
		if stateNames[s] == "" {
			t.Errorf("state %d has no name", s)
		}
	}
	for e := start; int(e) < numEvents; e++ {
		if eventNames[e] == "" {
			t.Errorf("event %d has no name", e)
		}
	}
}

var update = flag.Bool("update", false, "rewrite the generated parts of docs/states.md")

// docs/states.md shows the table as it is: change one and this fails.
// go test ./supervisor -run TestStatesDocument -update rewrites it.
func TestStatesDocument(t *testing.T) {
	const path = "../docs/states.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got := string(text)
	for name, want := range map[string]string{"picture": picture(), "table": cells()} {
		begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->\n"
		before, rest, ok := strings.Cut(got, begin)
		old, after, ok2 := strings.Cut(rest, end)
		if !ok || !ok2 {
			t.Fatalf("%s has no place for the %s", path, name)
		}
		if old != want && !*update {
			t.Errorf("the %s in %s is not that of life.go; want:\n%s", name, path, want)
		}
		got = before + begin + want + end + after
	}
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// picture draws the table: one arrow for each pair of states.
func picture() string {
	var b strings.Builder
	b.WriteString("```mermaid\nstateDiagram-v2\n    [*] --> stopped\n")
	for s := stopped; int(s) < numStates; s++ {
		for to := stopped; int(to) < numStates; to++ {
			var events []string
			for e := start; int(e) < numEvents; e++ {
				if cell := table[s][e]; to != s && cell.to == to {
					events = append(events, e.String())
				}
			}
			if events != nil {
				fmt.Fprintf(&b, "    %s --> %s : %s\n", s, to, strings.Join(events, ", "))
			}
		}
	}
	b.WriteString("```\n")
	return b.String()
}

// cells lists what is not "nothing happens".
func cells() string {
	var b strings.Builder
	b.WriteString("| state | event | next | what is done |\n|---|---|---|---|\n")
	for s := stopped; int(s) < numStates; s++ {
		var impossible []string
		for e := start; int(e) < numEvents; e++ {
			switch cell := table[s][e]; {
			case cell.do == never:
				impossible = append(impossible, e.String())
			case cell.to != s || cell.do != nothing:
				fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", s, e, cell.to, cell.do)
			}
		}
		fmt.Fprintf(&b, "| %s | | | *cannot happen:* %s |\n", s, strings.Join(impossible, ", "))
	}
	return b.String()
}

// A world is what a slot's owner and the system do with the actions of the
// table, as simply as can be: jobs that end when the test says so, a process that
// lives or not.
type world struct {
	life life

	fetching bool // a fetch is under way
	recalled bool // … and was called off
	giving   bool // work is being given back
	spawning bool // a spawn is under way
	ending   bool // an end is under way
	holding  bool // the backoff's clock runs
	awaiting bool // waits for what it comes after
	alive    int  // living processes
	asked    bool // the process was asked to end
	jammed   bool // its tree does not die
}

func (w *world) step(t *rapid.T, e event) {
	before := w.life
	next, do := before.on(e)
	w.life = next
	if next.at != before.at {
		w.holding, w.awaiting = false, false
	}
	switch do {
	case never:
		t.Fatalf("%s × %s happened", before.at, e)
	case await:
		w.awaiting = true
	case seek:
		if w.fetching {
			t.Fatal("two fetches")
		}
		w.fetching, w.recalled = true, false
	case recall:
		w.recalled = true
	case giveBack:
		w.giving = true
	case spawn:
		if w.spawning || w.alive > 0 {
			t.Fatal("a spawn beside a spawn or a living process")
		}
		w.spawning = true
	case terminate:
		w.asked = true
	case end:
		if w.ending {
			t.Fatal("two ends")
		}
		w.ending = true
	case hold:
		w.holding = true
	}
	if w.alive > 1 {
		t.Fatal("two living processes")
	}
}

// after picks the event that next would.
func (w *world) after(t *rapid.T) event {
	if !w.life.want {
		return rest
	}
	return rapid.SampledFrom([]event{again, later, giveUp}).Draw(t, "after")
}

// Whatever happens in whatever order, a slot never has two living processes or
// two starts under way; nothing happens that the table calls impossible; and
// where a process is wanted and there is none, something is under way that can
// end in one, or a person is waited for.
func TestLife_AnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{life: life{at: stopped}}
		wish := func(e event) func(*rapid.T) { return func(t *rapid.T) { w.step(t, e) } }
		t.Repeat(map[string]func(*rapid.T){
			"start": wish(start), "stop": wish(stop), "restart": wish(restart),
			"ready": wish(ready), "kill": wish(kill), "late clock": wish(stopTimeout),
			"late backoff": func(t *rapid.T) {
				if w.life.at != backoff { // a clock that has been turned off may still ring
					w.step(t, elapsed)
				}
			},
			"free": func(t *rapid.T) {
				if w.awaiting {
					w.step(t, free)
				}
			},
			"message": func(t *rapid.T) {
				if w.fetching {
					w.fetching = false
					w.step(t, work)
				}
			},
			"fetch ended": func(t *rapid.T) {
				if w.fetching {
					w.fetching = false
					e := w.after(t)
					if w.recalled && w.life.want {
						e = again
					}
					w.step(t, e)
				}
			},
			"given back": func(t *rapid.T) {
				if w.giving {
					w.giving = false
					if w.life.want {
						w.step(t, again)
					} else {
						w.step(t, rest)
					}
				}
			},
			"spawned": func(t *rapid.T) {
				if w.spawning {
					w.spawning = false
					w.alive++
					w.asked = false
					w.step(t, spawned)
				}
			},
			"spawn failed": func(t *rapid.T) {
				if w.spawning {
					w.spawning = false
					w.step(t, w.after(t))
				}
			},
			"exit": func(t *rapid.T) {
				if w.alive > 0 && !w.ending {
					w.step(t, exit)
				}
			},
			"gone": func(t *rapid.T) {
				if w.ending {
					w.ending, w.jammed = false, false
					w.alive--
					e := w.after(t)
					if w.life.want && rapid.Bool().Draw(t, "finish") {
						e = finish
					}
					w.step(t, e)
				}
			},
			"unkillable": func(t *rapid.T) {
				if w.ending && !w.jammed {
					w.jammed = true
					w.step(t, unkillable)
				}
			},
			"backoff over": func(t *rapid.T) {
				if w.holding {
					w.step(t, elapsed)
				}
			},
			"": func(t *rapid.T) { w.check(t) },
		})
	})
}

func (w *world) check(t *rapid.T) {
	pending := w.fetching || w.giving || w.spawning || w.ending || w.holding || w.awaiting
	switch at := w.life.at; {
	case w.alive > 0 != at.lives():
		t.Fatalf("%d processes live in state %s", w.alive, at)
	case w.life.want && w.alive == 0 && !pending && at != failed && at != exited:
		t.Fatalf("a process is wanted, none lives, and nothing is under way in state %s", at)
	case !w.life.want && (w.holding || w.awaiting):
		t.Fatalf("nothing is wanted, and state %s waits to start", at)
	case !w.life.want && at == up:
		t.Fatal("nothing is wanted, and the process was not asked to end")
	case at == stopped && (pending || w.alive > 0):
		t.Fatal("stopped with something under way")
	case !w.life.want && !pending && w.alive == 0 && at != stopped:
		t.Fatalf("nothing is wanted, nothing is under way, and the slot rests in state %s", at)
	}
}
