package supervisor_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/supervisor"
)

// fleets are lists of actors of a few names, which differ from each other in a few ways.
func fleets() *rapid.Generator[[]config.Actor] {
	return rapid.Custom(func(t *rapid.T) []config.Actor {
		var out []config.Actor
		for _, name := range rapid.Permutation([]string{"a", "b", "c", "d"}).Draw(t, "order") {
			if rapid.IntRange(0, 3).Draw(t, name) == 0 {
				continue
			}
			mode := rapid.SampledFrom([]config.Mode{config.Task, config.Worker, config.Daemon}).Draw(t, "mode")
			out = append(out, shell(name, mode, fmt.Sprint("exit ", rapid.IntRange(0, 1).Draw(t, "script")), func(a *config.Actor) {
				a.Replicas = rapid.IntRange(1, 3).Draw(t, "replicas")
				a.Stop.Timeout = time.Duration(rapid.IntRange(1, 2).Draw(t, "stop")) * time.Second
			}))
		}
		return out
	})
}

func named(list []config.Actor, name string) *config.Actor {
	if i := slices.IndexFunc(list, func(a config.Actor) bool { return a.Name == name }); i >= 0 {
		return &list[i]
	}
	return nil
}

// J7: a plan from a list to itself is empty, in whatever order; any other holds each actor
// that differs once, and no other, with the action that its difference asks for.
func TestPlan_HoldsWhatDiffers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old, now := fleets().Draw(t, "old"), fleets().Draw(t, "new")
		standing := map[string]supervisor.Standing{"a": {Stopped: rapid.Bool().Draw(t, "stopped"), Failed: rapid.Bool().Draw(t, "failed")}}
		if p := supervisor.Plan(old, rapid.Permutation(old).Draw(t, "same"), standing); len(p) != 0 {
			t.Fatalf("nothing differs, and the plan is %+v", p)
		}
		seen := map[string]bool{}
		for _, c := range supervisor.Plan(old, now, standing) {
			if seen[c.Actor] {
				t.Fatalf("%s is planned twice", c.Actor)
			}
			seen[c.Actor] = true
			before, after := named(old, c.Actor), named(now, c.Actor)
			want := supervisor.ActionUpdate
			switch {
			case before == nil:
				want = supervisor.ActionAdd
			case after == nil:
				want = supervisor.ActionRemove
			case before.Mode != config.Task && (before.Mode != after.Mode || !slices.Equal(before.Command, after.Command)):
				want = supervisor.ActionRestart
			case slices.Equal(c.Keys, []string{"replicas"}):
				want = supervisor.ActionScale
			}
			if c.Action != want {
				t.Fatalf("%+v, want %s", c, want)
			}
			if before != nil && c.From != before.Replicas || after != nil && c.To != after.Replicas || (len(c.Keys) > 0) != (before != nil && after != nil) {
				t.Fatalf("%+v", c)
			}
		}
		for _, name := range []string{"a", "b", "c", "d"} {
			before, after := named(old, name), named(now, name)
			if differs := (before == nil) != (after == nil) || before != nil && !reflect.DeepEqual(*before, *after); differs != seen[name] {
				t.Fatalf("%s differs: %v, planned: %v", name, differs, seen[name])
			}
		}
	})
}
