package supervisor

import (
	"slices"

	"github.com/sovereign-run/sovereign/config"
)

// An Action is what a reload does about an actor.
type Action string

const (
	ActionAdd     Action = "add"     // it was not declared, and is started
	ActionRemove  Action = "remove"  // it is not declared any more: it takes no new work, finishes what it has, and ends
	ActionRestart Action = "restart" // what its processes are has changed: they are stopped and started
	ActionScale   Action = "scale"   // it has more slots, or fewer, and nothing else has changed
	ActionUpdate  Action = "update"  // what has changed holds without a new process, or from the next one on
)

// A Change is what a reload does about one actor, and why.
type Change struct {
	Actor    string
	Action   Action
	Keys     []string // that differ, dotted, as config.Difference has them; none where it was added or removed
	From, To int      // its slots, before and after
	Note     string   // for people: what else follows; "" = nothing
}

// A Standing is what a plan has to know of an actor that was declared already.
type Standing struct {
	Stopped bool // by an operator, durably
	Failed  bool // one of its slots has ended too often
	Leaving bool // it was removed before, and still finishes what it has
}

// Plan says what a reload does that leads from one list of actors to another: in
// the order of the new list, then what is removed. What stays as it is does not
// appear. It is a function of its arguments and does nothing.
func Plan(old, declared []config.Actor, standing map[string]Standing) []Change {
	var out []Change
	for i := range declared {
		if c, ok := change(find(old, declared[i].Name), &declared[i], standing[declared[i].Name]); ok {
			out = append(out, c)
		}
	}
	for i := range old {
		if find(declared, old[i].Name) == nil {
			out = append(out, removal(&old[i]))
		}
	}
	return out
}

func find(list []config.Actor, name string) *config.Actor {
	i := slices.IndexFunc(list, func(a config.Actor) bool { return a.Name == name })
	if i < 0 {
		return nil
	}
	return &list[i]
}

// change is what becomes of a declared actor; old is nil where it is new. ok is
// false where it stays as it is.
func change(old, now *config.Actor, st Standing) (c Change, ok bool) {
	c = Change{Actor: now.Name, To: now.Replicas}
	if old == nil {
		c.Action = ActionAdd
		switch {
		case st.Stopped:
			c.Note = "an operator stopped it, and it stays so"
		case st.Leaving:
			c.Note = "it has not ended yet: what it has is finished first"
		}
		return c, true
	}
	c.From = old.Replicas
	d := config.Compare(old, now)
	if !d.Any() {
		return c, false
	}
	c.Keys = d.Keys
	switch {
	case d.Process && old.Mode != config.Task:
		c.Action = ActionRestart
	case len(d.Keys) == 1 && c.From != c.To:
		c.Action = ActionScale
	default:
		c.Action = ActionUpdate
	}
	switch {
	case st.Stopped:
		c.Note = "an operator stopped it, and it stays so"
	case st.Failed:
		c.Note = "it has failed, and is started anew"
	case c.To < c.From:
		c.Note = "the slots that go finish what they have"
	case d.Process && old.Mode == config.Task:
		c.Note = "a task that runs ends as it began"
	}
	return c, true
}

func removal(old *config.Actor) Change {
	c := Change{Actor: old.Name, Action: ActionRemove, From: old.Replicas, Note: "it finishes what it has; its messages stay"}
	if old.Mode == config.Daemon {
		c.Note = ""
	}
	return c
}
