package supervisor

import (
	"flag"
	"fmt"
	"math/rand/v2"
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

// A scene is what a slot's owner and the system do with the actions of the table,
// as simply as can be: jobs that end when the test says so, a process that lives or
// not.
type scene struct {
	life   life
	random *rand.Rand

	fetching bool // a fetch is under way
	recalled bool // … and was called off
	giving   bool // work is being given back
	spawning bool // a spawn is under way
	ending   bool // an end is under way
	holding  bool // the backoff's clock runs
	awaiting bool // waits for what it comes after
	alive    int  // living processes
	asked    bool // the process was asked to end
	exited   bool // the process has ended, its tree may live
	doomed   bool // the process has to end at once
	jammed   bool // its tree does not die
	broken   bool // the supervisor stops for an error
}

func (sc *scene) step(t *rapid.T, e event) {
	before := sc.life
	next, do := before.on(e)
	sc.life = next
	if next.at != before.at {
		sc.holding, sc.awaiting = false, false
	}
	switch do {
	case never:
		t.Fatalf("%s × %s happened", before.at, e)
	case await:
		sc.awaiting = true
	case seek:
		if sc.fetching {
			t.Fatal("two fetches")
		}
		sc.fetching, sc.recalled = true, false
	case recall:
		sc.recalled = true
	case giveBack:
		sc.giving = true
	case spawn:
		if sc.spawning || sc.alive > 0 {
			t.Fatal("a spawn beside a spawn or a living process")
		}
		sc.spawning = true
	case terminate:
		sc.asked = true
	case end:
		if sc.ending {
			t.Fatal("two ends")
		}
		sc.ending = true
	case hold:
		sc.holding = true
	}
	switch e {
	case giveUp, finish, later, again, rest:
		want := map[event]state{giveUp: failed, finish: exited, later: backoff, again: waiting, rest: stopped}[e]
		if next.at != want {
			t.Fatalf("%s × %s leads to %s, want %s", before.at, e, next.at, want)
		}
	case start, stop, restart, kill:
		if before.at == stuck && do != killAgain {
			t.Fatalf("stuck × %s does not try again", e)
		}
		if e == restart && (before.at == up || before.at == starting) && do != terminate {
			t.Fatalf("%s × restart does not end the process", before.at)
		}
		if e != kill && e != stop && (next.at == failed || next.at == exited || next.at == backoff) {
			t.Fatalf("%s × %s does not start", before.at, e)
		}
	case elapsed:
		if before.at == backoff && next.at != waiting {
			t.Fatal("the backoff is over, and nothing starts")
		}
	case unkillable:
		if next.at != stuck {
			t.Fatalf("what cannot be killed leaves the slot %s", next.at)
		}
	}
}

// after picks one of the events that next would.
func (sc *scene) after(among ...event) event {
	if !sc.life.want || sc.broken {
		return rest
	}
	return among[sc.random.IntN(len(among))]
}

// A happening is something that can be next.
type happening struct {
	name string
	do   func(*rapid.T)
}

// possible is all that can be next.
func (sc *scene) possible() (out []happening) {
	add := func(can bool, name string, do func(*rapid.T)) {
		if can {
			out = append(out, happening{name, do})
		}
	}
	for _, e := range []event{start, stop, restart, ready, stopTimeout} {
		add(true, e.String(), func(t *rapid.T) { sc.step(t, e) })
	}
	add(!sc.broken, "break", func(t *rapid.T) { sc.broken = sc.random.IntN(30) == 0 })
	add(true, "kill", func(t *rapid.T) { sc.doomed = sc.alive > 0; sc.step(t, kill) })
	add(sc.life.at != backoff || sc.holding, "elapsed", func(t *rapid.T) { sc.step(t, elapsed) })
	add(sc.awaiting, "free", func(t *rapid.T) { sc.step(t, free) })
	add(sc.fetching, "work", func(t *rapid.T) { sc.fetching = false; sc.step(t, work) })
	add(sc.fetching, "fetch ended", func(t *rapid.T) {
		sc.fetching = false
		if sc.recalled {
			sc.step(t, sc.after(again))
			return
		}
		sc.step(t, sc.after(later, giveUp))
	})
	add(sc.giving, "given back", func(t *rapid.T) { sc.giving = false; sc.step(t, sc.after(again)) })
	add(sc.spawning, "spawned", func(t *rapid.T) {
		sc.spawning, sc.asked = false, false
		sc.alive++
		sc.step(t, spawned)
	})
	add(sc.spawning, "not spawned", func(t *rapid.T) { sc.spawning = false; sc.step(t, sc.after(later, giveUp)) })
	add(sc.alive > 0 && !sc.ending, "exit", func(t *rapid.T) { sc.exited = true; sc.step(t, exit) })
	add(sc.ending && !sc.jammed, "unkillable", func(t *rapid.T) { sc.jammed = true; sc.step(t, unkillable) })
	add(sc.ending, "gone", func(t *rapid.T) {
		sc.ending, sc.jammed, sc.exited, sc.doomed = false, false, false, false
		sc.alive--
		sc.step(t, sc.after(again, later, giveUp, finish))
	})
	return out
}

// Whatever happens in whatever order, a slot never has two living processes or
// two starts under way; nothing happens that the table calls impossible; where a
// process is wanted and there is none, something is under way that can end in one,
// or a person is waited for; and from wherever it is, a stop ends in stopped and a
// start in up, as soon as nothing stands in the way.
func TestLife_AnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Evenly random, which rapid's own choices are not: they prefer the first.
		seed := rapid.Uint64().Draw(t, "seed")
		sc := &scene{life: life{at: stopped}, random: rand.New(rand.NewPCG(seed, seed))}
		for range sc.random.IntN(300) {
			sc.some(t)
			sc.check(t)
		}
		sc.broken = false
		wish, goal := start, up
		if sc.random.IntN(2) == 0 {
			wish, goal = stop, stopped
		}
		sc.step(t, wish)
		for n := 0; sc.life.at != goal; n++ {
			if n > 20 {
				t.Fatalf("after a %s it is %s for good", wish, sc.life.at)
			}
			sc.favour(t)
			sc.check(t)
		}
	})
}

// some lets one of the things happen that can.
func (sc *scene) some(t *rapid.T) {
	can := sc.possible()
	n := sc.random.IntN(len(can))
	t.Log(sc.life.at, can[n].name)
	can[n].do(t)
}

// favour lets that happen which brings the wish nearer: nothing fails.
func (sc *scene) favour(t *rapid.T) {
	switch {
	case sc.ending:
		sc.ending, sc.jammed, sc.exited, sc.doomed = false, false, false, false
		sc.alive--
		sc.step(t, sc.after(again))
	case sc.spawning:
		sc.spawning, sc.asked = false, false
		sc.alive++
		sc.step(t, spawned)
	case sc.giving:
		sc.giving = false
		sc.step(t, sc.after(again))
	case sc.fetching && sc.recalled:
		sc.fetching = false
		sc.step(t, sc.after(again))
	case sc.fetching:
		sc.fetching = false
		sc.step(t, work)
	case sc.awaiting:
		sc.step(t, free)
	case sc.holding:
		sc.step(t, elapsed)
	case sc.life.at == starting:
		sc.step(t, ready)
	case sc.life.at == stopping: // it does not end by itself
		sc.step(t, stopTimeout)
	}
}

func (sc *scene) check(t *rapid.T) {
	pending := sc.fetching || sc.giving || sc.spawning || sc.ending || sc.holding || sc.awaiting
	switch at := sc.life.at; {
	case sc.alive > 1:
		t.Fatal("two living processes")
	case sc.alive > 0 != at.lives():
		t.Fatalf("%d processes live in state %s", sc.alive, at)
	case (sc.exited || sc.doomed) && !sc.ending:
		t.Fatalf("the process ended or had to, and state %s does not end its tree", at)
	case sc.life.want && sc.alive == 0 && !pending && at != failed && at != exited && !(sc.broken && at == stopped):
		t.Fatalf("a process is wanted, none lives, and nothing is under way in state %s", at)
	case !sc.life.want && (sc.holding || sc.awaiting):
		t.Fatalf("nothing is wanted, and state %s waits to start", at)
	case !sc.life.want && sc.alive > 0 && !sc.asked && !sc.ending:
		t.Fatalf("nothing is wanted, and the process was not asked to end in state %s", at)
	case at == stopped && (pending || sc.alive > 0):
		t.Fatal("stopped with something under way")
	case !sc.life.want && !pending && sc.alive == 0 && at != stopped:
		t.Fatalf("nothing is wanted, nothing is under way, and the slot rests in state %s", at)
	}
}
