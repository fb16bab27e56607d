package config

import (
	"maps"
	"reflect"
	"slices"
)

// A Difference is what two declarations of one actor do not have in common.
type Difference struct {
	// Keys that differ, dotted, in the order of the reference page. Of env it is the
	// variables, as "env.NAME"; their values may be secrets.
	Keys []string
	// Process: a process started by the one is not a process started by the other.
	// False where all that differs can change while a process runs.
	Process bool
}

// Any reports whether anything differs.
func (d Difference) Any() bool { return len(d.Keys) > 0 }

// Compare says how b differs from a, two checked declarations of one actor. It
// changes neither.
func Compare(a, b *Actor) Difference {
	var d Difference
	d.compare(a, b, actorKeys, "", false)
	return d
}

func (d *Difference) compare(a, b *Actor, keys []*key, prefix string, live bool) {
	for _, k := range keys {
		path, live := prefix+k.name, live || k.live
		if k.told != nil && (k.told(a) || k.told(b)) {
			live = false
		}
		switch {
		case !k.fits(a.Mode) || !k.fits(b.Mode): // it went, or came, with the mode
		case k.keys != nil && k.present != nil && k.present(a) != k.present(b):
			d.add(live, path)
		case k.keys != nil && (k.present == nil || k.present(a)):
			d.compare(a, b, k.keys, path+".", live)
		case k.keys != nil:
		case k.name == "env":
			d.add(live, variables(a.Env, b.Env)...)
		case !same(k.field.get(a), k.field.get(b)):
			d.add(live, path)
		}
	}
}

func (d *Difference) add(live bool, keys ...string) {
	d.Keys = append(d.Keys, keys...)
	if len(keys) > 0 && !live {
		d.Process = true
	}
}

// variables are those that differ, as keys, by name.
func variables(a, b map[string]string) []string {
	var out []string
	all := maps.Clone(a)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, b)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		before, had := a[name]
		now, has := b[name]
		if had != has || before != now {
			out = append(out, "env."+name)
		}
	}
	return out
}

// same reports whether two values of one key are the same; an empty list is none.
func same(a, b any) bool {
	if v, w := reflect.ValueOf(a), reflect.ValueOf(b); v.Kind() == reflect.Slice && v.Len() == 0 && w.Len() == 0 {
		return true
	}
	return reflect.DeepEqual(a, b)
}
