package config

import "strings"

// The private doors of the tests.

// A KeyDoc is a row of the table of keys.
type KeyDoc struct{ Path, Meaning, Default string }

// Keys is the whole table, those of the file first.
func Keys() []KeyDoc {
	var list []KeyDoc
	var add func(keys []*key, prefix string)
	add = func(keys []*key, prefix string) {
		for _, k := range keys {
			list = append(list, KeyDoc{prefix + k.name, k.meaning, k.def})
			add(k.keys, prefix+k.name+".")
		}
	}
	for _, k := range fileKeys {
		list = append(list, KeyDoc{k.name, k.meaning, k.def})
	}
	add(actorKeys, "")
	return list
}

// Source is f as an actors.yaml would hold it, every default written out.
func Source(f *File) map[string]any {
	actors := make(map[string]any)
	for i := range f.Actors {
		var list []Setting
		for _, s := range effective(&f.Actors[i], actorKeys, "") {
			if s.Key != "env_file" { // its variables are in env
				list = append(list, s)
			}
		}
		actors[f.Actors[i].Name] = nested(list)
	}
	return map[string]any{"version": 1, "data": f.Data, "actors": actors}
}

// Slips is what did-you-mean goes by.
var Slips = slips

// AllStandards computes every built-in default; it panics where one is no
// value of its own key.
func AllStandards() {
	var visit func([]*key)
	visit = func(keys []*key) {
		for _, k := range keys {
			if k.def != "" {
				k.standard()
			}
			visit(k.keys)
		}
	}
	visit(fileKeys)
}

// Marks of the generated part of docs/actors.md.
const (
	keysBegin = "<!-- keys: generated, see below -->\n"
	keysEnd   = "<!-- end of keys -->\n"
)

// WithReference is page with the table of keys between its marks.
func WithReference(page string) string {
	before, rest, _ := strings.Cut(page, keysBegin)
	_, after, _ := strings.Cut(rest, keysEnd)
	return before + keysBegin + "\n" + string(Reference()) + "\n" + keysEnd + after
}
