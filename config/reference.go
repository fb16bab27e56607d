package config

import (
	"fmt"
	"strings"
)

// A KeyText is one key of actors.yaml in words.
type KeyText struct {
	Key     string   `json:"key"` // with those of the mappings around it, as in stop.signal
	Value   string   `json:"value"`
	Default string   `json:"default,omitempty"` // as the file would write it; "": off or empty unless given
	Modes   []string `json:"modes,omitempty"`   // in which it makes sense; none: in all
	Meaning string   `json:"meaning"`
}

// KeyTexts are all keys in words, in the order in which docs/actors.md has them: first those of the
// file, then those of an actor.
func KeyTexts() []KeyText {
	return appendKeys(appendKeys(nil, fileKeys, "", nil, false), actorKeys, "", nil, true)
}

// appendKeys appends keys, and where deep those of mappings, to list.
func appendKeys(list []KeyText, keys []*key, prefix string, modes []Mode, deep bool) []KeyText {
	for _, k := range keys {
		within := modes
		if k.modes != nil {
			within = k.modes
		}
		text := KeyText{Key: prefix + k.name, Value: "a mapping", Default: k.def, Modes: modeNames(within), Meaning: k.meaning}
		if k.keys == nil {
			text.Value = k.kind.allowed()
		}
		list = append(list, text)
		if deep && k.keys != nil {
			list = appendKeys(list, k.keys, prefix+k.name+".", within, deep)
		}
	}
	return list
}

// Reference is the table of every key, in Markdown: what stands between the
// marks in docs/actors.md.
func Reference() []byte {
	var b strings.Builder
	b.WriteString("| key | value | default | modes | meaning |\n|---|---|---|---|---|\n")
	for _, k := range KeyTexts() {
		def, in := "", "all"
		if k.Default != "" {
			def = "`" + k.Default + "`"
		}
		if len(k.Modes) > 0 {
			in = strings.Join(k.Modes, ", ")
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", k.Key, k.Value, def, in, k.Meaning)
	}
	return []byte(b.String())
}
