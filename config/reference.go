package config

import (
	"fmt"
	"strings"
)

// Reference is the table of every key, in Markdown: what stands between the
// marks in docs/actors.md.
func Reference() []byte {
	var b strings.Builder
	b.WriteString("| key | value | default | modes | meaning |\n|---|---|---|---|---|\n")
	for _, k := range fileKeys {
		if k.keys != nil {
			row(&b, k, k.name, "a mapping", nil)
			continue
		}
		row(&b, k, k.name, k.kind.allowed(), nil)
	}
	rows(&b, actorKeys, "", nil)
	return []byte(b.String())
}

func rows(b *strings.Builder, keys []*key, prefix string, modes []Mode) {
	for _, k := range keys {
		within := modes
		if k.modes != nil {
			within = k.modes
		}
		if k.keys != nil {
			row(b, k, prefix+k.name, "a mapping", within)
			rows(b, k.keys, prefix+k.name+".", within)
			continue
		}
		row(b, k, prefix+k.name, k.kind.allowed(), within)
	}
}

func row(b *strings.Builder, k *key, path, value string, modes []Mode) {
	def, in := "", "all"
	if k.def != "" {
		def = "`" + k.def + "`"
	}
	if modes != nil {
		in = strings.Join(modeNames(modes), ", ")
	}
	fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s |\n", path, value, def, in, k.meaning)
}
