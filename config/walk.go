package config

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// namePattern is what an actor may be called.
const namePattern = `^[a-z0-9][a-z0-9._-]{0,62}$`

var nameForm = regexp.MustCompile(namePattern)

// A walk goes over the nodes of one file once, and gathers what it finds
// wrong. It goes on after every problem.
type walk struct {
	path     string // as the user gave it
	folder   string // of the file, absolute
	found    []Problem
	envFiles map[string]map[string]string // read so far, by absolute path
}

// A setting is the value of one key of one actor, or of defaults, and where it
// stands. bad: it was refused, and only its place counts.
type setting struct {
	value   any
	key, at *yaml.Node
	items   []*yaml.Node // of an actorList, one for each name
	bad     bool
}

// settings are by dotted path: "backoff.initial", and "backoff" for the
// mapping itself.
type settings map[string]setting

func (w *walk) report(n *yaml.Node, format string, args ...any) {
	message := oneLine(fmt.Sprintf(format, args...))
	w.found = append(w.found, Problem{w.path, max(n.Line, 1), max(n.Column, 1), message})
}

// oneLine is s with what would not stay on one line of a terminal escaped.
func oneLine(s string) string {
	var b strings.Builder
	for _, r := range s {
		if strconv.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
	}
	return b.String()
}

// plain refuses what YAML offers for sharing and typing values, where it
// stands, and reports whether n can be read. It is called once for each node.
func (w *walk) plain(n *yaml.Node) bool {
	if n.Kind == yaml.AliasNode {
		w.report(n, "alias *%s is not allowed, write the value out", n.Value)
		return false
	}
	if n.Anchor != "" {
		w.report(n, "anchor &%s is not allowed, write the value out where it is needed", n.Anchor)
	}
	if n.Style&yaml.TaggedStyle != 0 || n.Tag == "!" {
		w.report(n, "tag %s is not allowed, every value is read as what its key needs", n.Tag)
	}
	return true
}

// skip looks at what stands under a key that is refused anyway.
func (w *walk) skip(n *yaml.Node) {
	if w.plain(n) {
		w.inside(n)
	}
}

// inside looks at the nodes under n, whose own form is known.
func (w *walk) inside(n *yaml.Node) {
	switch n.Kind {
	case yaml.MappingNode:
		for _, p := range w.pairs(n) {
			w.skip(p.value)
		}
	case yaml.SequenceNode:
		for _, item := range n.Content {
			w.skip(item)
		}
	}
}

// empty reports whether n is a value left out, or one of YAML's words for it.
func empty(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// wrongType reports that n, the value of name, is of another form than allowed,
// and looks at what is inside.
func (w *walk) wrongType(n *yaml.Node, name, allowed string) {
	is := "is a single value"
	switch {
	case empty(n):
		is = "has no value"
	case n.Kind == yaml.MappingNode:
		is = "is a mapping"
	case n.Kind == yaml.SequenceNode:
		is = "is a list"
	}
	w.report(n, "%s %s, allowed: %s", name, is, allowed)
	w.inside(n)
}

type pair struct{ key, value *yaml.Node }

// pairs are the entries of the mapping n that have a plain key, the first of
// each.
func (w *walk) pairs(n *yaml.Node) []pair {
	first := make(map[string]*yaml.Node)
	var list []pair
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch before := first[key.Value]; {
		case !w.plain(key):
			w.skip(value)
		case key.Kind != yaml.ScalarNode:
			w.report(key, "a key is a %s, allowed: a word", form(key))
			w.inside(key)
			w.skip(value)
		case key.Tag == "!!merge":
			w.report(key, "merge key << is not allowed, use defaults or write the values out")
			w.skip(value)
		case before != nil:
			w.report(key, "%s is given twice, first in line %d, allowed: once", short(key.Value), before.Line)
			w.skip(value)
		default:
			first[key.Value] = key
			list = append(list, pair{key, value})
		}
	}
	return list
}

func form(n *yaml.Node) string {
	if n.Kind == yaml.MappingNode {
		return "mapping"
	}
	return "list"
}

// mapping reads the mapping n, which is at the path prefix, into s.
func (w *walk) mapping(n *yaml.Node, prefix string, keys []*key, s settings) {
	for _, p := range w.pairs(n) {
		k := find(keys, p.key.Value)
		if k == nil {
			if meant := w.unknown(p.key, prefix, keys); meant != "" {
				// So that the key is not reported as missing as well.
				if _, given := s[prefix+meant]; !given {
					s[prefix+meant] = setting{key: p.key, at: p.value, bad: true}
				}
			}
			w.skip(p.value)
			continue
		}
		w.setting(p, prefix+k.name, k, s)
	}
}

// setting reads the value of k, which is at path, into s.
func (w *walk) setting(p pair, path string, k *key, s settings) {
	one := setting{key: p.key, at: p.value}
	switch {
	case !w.plain(p.value):
		one.bad = true
	case k.keys != nil && p.value.Kind != yaml.MappingNode:
		w.wrongType(p.value, path, "a mapping of "+joined(names(k.keys), " and "))
		one.bad = true
	case k.keys != nil:
		w.mapping(p.value, path+".", k.keys, s)
	default:
		one.value, one.items, one.bad = w.value(p.value, path, k.kind)
	}
	s[path] = one
}

// value reads n as kind, at path.
func (w *walk) value(n *yaml.Node, path string, as kind) (value any, items []*yaml.Node, bad bool) {
	switch as := as.(type) {
	case scalar:
		value, bad = w.scalar(n, path, as)
	case commandLine:
		value, bad = w.command(n, path)
	case environment:
		value, bad = w.environment(n, path)
	case actorList:
		return w.actorList(n, path)
	}
	return value, items, bad
}

func (w *walk) scalar(n *yaml.Node, path string, as scalar) (value any, bad bool) {
	if n.Kind != yaml.ScalarNode || empty(n) {
		w.wrongType(n, path, as.allowed())
		return nil, true
	}
	value, err := as.parse(n.Value, n.Style&^yaml.TaggedStyle != 0)
	if err != nil {
		w.report(n, "%s: %s %s allowed: %s", path, short(n.Value), clause(err), as.allowed())
		return nil, true
	}
	return value, false
}

// clause is err with the sign that what follows needs.
func clause(err error) string {
	if strings.HasSuffix(err.Error(), "?") {
		return err.Error()
	}
	return err.Error() + ","
}

// unknown reports a key that is not in keys, with what it may have been meant
// as; where that is one of keys, it is returned.
func (w *walk) unknown(n *yaml.Node, prefix string, keys []*key) string {
	where := ""
	if prefix != "" {
		where = " in " + strings.TrimSuffix(prefix, ".")
	}
	if meant := suggest(n.Value, keys); meant != nil {
		w.report(n, "unknown key %s%s, did you mean %s?", short(n.Value), where, either(meant))
		if find(keys, meant[0]) != nil {
			return meant[0]
		}
		return ""
	}
	w.report(n, "unknown key %s%s, allowed: %s", short(n.Value), where, strings.Join(names(keys), ", "))
	return ""
}

func find(keys []*key, name string) *key {
	for _, k := range keys {
		if k.name == name {
			return k
		}
	}
	return nil
}

func names(keys []*key) []string {
	list := make([]string, len(keys))
	for i, k := range keys {
		list[i] = k.name
	}
	return list
}

// short quotes a text of the file for a message, cut where it is long.
func short(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		return fmt.Sprintf("%q…", string(r[:most]))
	}
	return fmt.Sprintf("%q", s)
}
