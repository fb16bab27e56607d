package config

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// A Description is what a File comes to, for people and programs to look at:
// every path absolute, every default filled in, and no value of an environment
// variable, which may be a secret.
type Description struct {
	File   string             `json:"file"`
	Data   string             `json:"data"`
	Actors []ActorDescription `json:"actors"`
}

// An ActorDescription is what holds for one actor, in the order of the
// reference page. As JSON it has the shape of the actor in the file, with its
// name under "actor" and the names of its variables under "env".
type ActorDescription struct {
	Actor    string
	Settings []Setting
}

// A Setting is one key that is in effect. Value is a string, number, bool or
// []string; durations and sizes are strings as in the file.
type Setting struct {
	Key   string // dotted: "lease.ttl"
	Value any
}

// Describe says what f comes to. It reads nothing but f.
func Describe(f *File) Description {
	d := Description{File: f.Path, Data: f.Data, Actors: make([]ActorDescription, 0, len(f.Actors))}
	for i := range f.Actors {
		list := effective(&f.Actors[i], actorKeys, "")
		for j, s := range list {
			if env, ok := s.Value.(map[string]string); ok {
				list[j].Value = slices.Sorted(maps.Keys(env))
			}
		}
		d.Actors = append(d.Actors, ActorDescription{f.Actors[i].Name, list})
	}
	return d
}

// effective is every key of keys that holds for a.
func effective(a *Actor, keys []*key, prefix string) []Setting {
	var list []Setting
	for _, k := range keys {
		path := prefix + k.name
		switch {
		case !k.fits(a.Mode):
		case k.keys != nil && (k.present == nil || k.present(a)):
			list = append(list, effective(a, k.keys, path+".")...)
		case k.keys != nil:
		case k.def == "" && reflect.DeepEqual(k.field.get(a), k.field.get(&Actor{Umask: -1})):
		default:
			list = append(list, Setting{path, k.kind.show(k.field.get(a))})
		}
	}
	return list
}

// MarshalJSON nests the settings as the file does.
func (d ActorDescription) MarshalJSON() ([]byte, error) {
	actor := nested(d.Settings)
	actor["actor"] = d.Actor
	return json.Marshal(actor)
}

// nested is list as the mappings of the file.
func nested(list []Setting) map[string]any {
	top := make(map[string]any)
	for _, s := range list {
		outer, inner, found := strings.Cut(s.Key, ".")
		if !found {
			top[s.Key] = s.Value
			continue
		}
		under, ok := top[outer].(map[string]any)
		if !ok {
			under = make(map[string]any)
			top[outer] = under
		}
		under[inner] = s.Value
	}
	return top
}
