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

//go:generate go test -run TestStatesDocument -update .

// docs/states.md shows the table as it is: change one and this fails.
// go generate ./supervisor rewrites it.
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
	delayed  bool // the backoff's clock runs
	awaiting bool // waits for what it comes after
	alive    int  // living processes
	asked    bool // the process was asked to end
	exited   bool // the process has ended, its tree may live
	doomed   bool // the process has to end at once
	jammed   bool // its tree does not die
	broken   bool // the supervisor stops for an error

	def       int  // number of the definition that the slot lives by
	mode      int  // … and its mode: 0 = task
	leaving   bool // it is not declared any more
	early     bool // work is being given back before it was taken on
	making    made // what the spawn under way makes
	child     made // what lives
	finishing bool // the process was told to take no new work
}

// A made is what a process was started by.
type made struct{ def, mode int }

func (sc *scene) step(t *rapid.T, e event) {
	before := sc.life
	next, do := before.on(e)
	sc.life = next
	if next.at != before.at {
		sc.delayed, sc.awaiting = false, false
	}
	switch do {
	case never:
		t.Fatalf("%s × %s happened", before.at, e)
	case await:
		sc.awaiting = true
	case seek:
		if sc.fetching || sc.early {
			t.Fatal("two fetches")
		}
		if sc.mode != 0 {
			sc.step(t, work)
			return
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
		sc.making = made{sc.def, sc.mode}
	case finishUp:
		sc.finishing = true
	case terminate:
		sc.asked = true
	case end:
		if sc.ending {
			t.Fatal("two ends")
		}
		sc.ending = true
	case delayStart:
		sc.delayed = true
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
		add(!sc.leaving || e != start && e != restart, e.String(), func(t *rapid.T) { sc.step(t, e) })
	}
	add(true, "reload", func(t *rapid.T) { sc.adopt(t, sc.random.IntN(4), sc.random.IntN(2) == 0) })
	add(!sc.leaving, "removed", func(t *rapid.T) { sc.leaving = true; sc.step(t, retire) })
	add(sc.finishing && sc.child.mode != 0, "holds nothing", sc.finished)
	add(!sc.broken, "break", func(t *rapid.T) { sc.broken = sc.random.IntN(30) == 0 })
	add(true, "kill", func(t *rapid.T) { sc.doomed = sc.alive > 0; sc.step(t, kill) })
	add(sc.life.at != backoff || sc.delayed, "elapsed", func(t *rapid.T) { sc.step(t, elapsed) })
	add(sc.awaiting, "free", func(t *rapid.T) { sc.step(t, free) })
	add(sc.fetching, "work", sc.fetched)
	add(sc.early, "given back early", func(t *rapid.T) { sc.early = false; sc.step(t, sc.after(again)) })
	add(sc.fetching, "fetch ended", func(t *rapid.T) {
		sc.fetching = false
		if sc.recalled {
			sc.step(t, sc.after(again))
			return
		}
		sc.step(t, sc.after(later, giveUp))
	})
	add(sc.giving, "given back", func(t *rapid.T) { sc.giving = false; sc.step(t, sc.after(again)) })
	add(sc.spawning, "spawned", sc.spawned)
	add(sc.spawning, "not spawned", func(t *rapid.T) {
		sc.spawning = false
		if sc.making.def != sc.def {
			sc.step(t, sc.after(again))
			return
		}
		sc.step(t, sc.after(later, giveUp))
	})
	add(sc.alive > 0 && !sc.ending, "exit", func(t *rapid.T) { sc.exited = true; sc.step(t, exit) })
	add(sc.ending && !sc.jammed, "unkillable", func(t *rapid.T) { sc.jammed = true; sc.step(t, unkillable) })
	add(sc.ending, "gone", func(t *rapid.T) {
		sc.gone()
		if sc.child.def != sc.def {
			sc.step(t, sc.after(again))
			return
		}
		sc.step(t, sc.after(again, later, giveUp, finish))
	})
	return out
}

// finished is what slot.finishUp does once the worker holds nothing.
func (sc *scene) finished(t *rapid.T) { sc.step(t, sc.life.finished()) }

func (sc *scene) gone() {
	sc.ending, sc.jammed, sc.exited, sc.doomed, sc.finishing = false, false, false, false, false
	sc.alive--
}

// fetched is what slot.fetch does with a message.
func (sc *scene) fetched(t *rapid.T) {
	sc.fetching = false
	if sc.leaving || sc.mode != 0 {
		sc.early = true
		return
	}
	sc.step(t, work)
}

// spawned is what slot.spawn does with a process, slot.catchUp included.
func (sc *scene) spawned(t *rapid.T) {
	sc.spawning, sc.asked = false, false
	sc.alive++
	sc.child = sc.making
	sc.step(t, spawned)
	switch {
	case !sc.life.want:
		sc.step(t, retire)
	case sc.child.def != sc.def && sc.child.mode != 0:
		sc.step(t, restart)
	}
}

// adopt is what slot.adopt does: much is how much has changed, from nothing to the mode;
// wanted says whether one that was to go is to run again.
func (sc *scene) adopt(t *rapid.T, much int, wanted bool) {
	a := adoption{changed: much > 0, renewed: much > 1, remade: much > 2, task: sc.alive > 0 && sc.child.mode == 0, drained: sc.finishing,
		runs: sc.random.IntN(2) == 0}
	if a.renewed {
		sc.def++
	}
	if a.remade {
		sc.mode = 1 - sc.mode
	}
	asked := sc.asked
	if sc.leaving {
		sc.leaving = false
		if wanted {
			sc.step(t, start)
		}
	}
	for _, e := range sc.life.adopt(a) {
		sc.step(t, e)
	}
	if sc.alive > 0 && sc.finishing && sc.asked && !asked {
		t.Fatalf("a reload asks the process to end in state %s, which was to finish what it has", sc.life.at)
	}
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
		switch sc.random.IntN(3) {
		case 0:
			wish, goal = stop, stopped
		case 1:
			wish, goal = retire, stopped
		default:
			sc.adopt(t, 0, true)
		}
		sc.leaving = wish == retire
		sc.step(t, wish)
		for n := 0; sc.life.at != goal || goal == up && sc.finishing; n++ {
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
		sc.gone()
		sc.step(t, sc.after(again))
	case sc.spawning:
		sc.spawned(t)
	case sc.early:
		sc.early = false
		sc.step(t, sc.after(again))
	case sc.giving:
		sc.giving = false
		sc.step(t, sc.after(again))
	case sc.fetching && sc.recalled:
		sc.fetching = false
		sc.step(t, sc.after(again))
	case sc.fetching:
		sc.fetched(t)
	case sc.awaiting:
		sc.step(t, free)
	case sc.delayed:
		sc.step(t, elapsed)
	case sc.finishing && sc.child.mode == 0 && sc.life.at != stopping:
		sc.exited = true
		sc.step(t, exit)
	case sc.finishing && sc.life.at != stopping:
		sc.finished(t)
	case sc.life.at == starting:
		sc.step(t, ready)
	case sc.life.at == stopping: // it does not end by itself
		sc.step(t, stopTimeout)
	}
}

func (sc *scene) check(t *rapid.T) {
	pending := sc.fetching || sc.giving || sc.early || sc.spawning || sc.ending || sc.delayed || sc.awaiting
	switch at := sc.life.at; {
	case sc.alive > 1:
		t.Fatal("two living processes")
	case sc.alive > 0 != at.lives():
		t.Fatalf("%d processes live in state %s", sc.alive, at)
	case (sc.exited || sc.doomed) && !sc.ending:
		t.Fatalf("the process ended or had to, and state %s does not end its tree", at)
	case sc.life.want && sc.alive == 0 && !pending && at != failed && at != exited && !(sc.broken && at == stopped):
		t.Fatalf("a process is wanted, none lives, and nothing is under way in state %s", at)
	case !sc.life.want && (sc.delayed || sc.awaiting):
		t.Fatalf("nothing is wanted, and state %s waits to start", at)
	case sc.life.want && (at == starting || at == up) && sc.child.mode != 0 && sc.child.def != sc.def && !sc.finishing:
		t.Fatalf("a process runs on in state %s that was to be another", at)
	case sc.life.want && at == idle && sc.mode != 0 && !sc.early:
		t.Fatal("a slot whose processes stay waits for a message")
	case !sc.life.want && sc.alive > 0 && !sc.asked && !sc.ending && !sc.finishing:
		t.Fatalf("nothing is wanted, and the process was not asked to end in state %s", at)
	case at == stopped && (pending || sc.alive > 0):
		t.Fatal("stopped with something under way")
	case !sc.life.want && !pending && sc.alive == 0 && at != stopped:
		t.Fatalf("nothing is wanted, nothing is under way, and the slot rests in state %s", at)
	}
}
