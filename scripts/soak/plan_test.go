package main

import (
	"reflect"
	"testing"
)

// A seed is replayable: its decisions are the same each time, whatever happens
// meanwhile, and those of another seed are others.
func TestPlan_FollowsFromTheSeed(t *testing.T) {
	steps := func(seed uint64) (out []Step) {
		for p := newPlan(seed); len(out) < 2000; {
			out = append(out, p.Next())
		}
		return out
	}
	if !reflect.DeepEqual(steps(1), steps(1)) {
		t.Error("two plans of one seed differ")
	}
	if reflect.DeepEqual(steps(1), steps(2)) {
		t.Error("two seeds have one plan")
	}
	kinds := map[string]bool{}
	for _, s := range steps(3) {
		kinds[s.Do] = true
	}
	for _, w := range weights {
		if !kinds[w.do] {
			t.Errorf("no step of 2000 does this: %s", w.do)
		}
	}
}

// What is sent with a key is the same for each attempt, or the second attempt would
// send other content under the key of the first.
func TestBehave_KeyedSendsAreTheSameForEachAttempt(t *testing.T) {
	seen := map[string]Follow{}
	for n := range 400 {
		nonce := "2/" + string(rune('a'+n%26))
		for attempt := 1; attempt < 8; attempt++ {
			b := behave(uint64(n), nonce, attempt, modeChannel)
			if !reflect.DeepEqual(b, behave(uint64(n), nonce, attempt, modeChannel)) {
				t.Fatal("one attempt has two behaviours")
			}
			for _, f := range b.Staged {
				if f.Key == "" {
					continue
				}
				name := string(rune(n)) + f.Key
				if other, known := seen[name]; known && other != f {
					t.Fatalf("the key %s stands for %v and for %v", f.Key, other, f)
				}
				seen[name] = f
			}
		}
	}
	if len(seen) == 0 {
		t.Fatal("nothing is sent with a key")
	}
}
