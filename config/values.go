package config

import (
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"
)

// ownPrefix begins the names of the variables that the supervisor sets itself.
const ownPrefix = "SOVEREIGN_"

var envNameForm = regexp.MustCompile(envNamePattern)

// command reads a command, as a []string.
func (w *walk) command(n *yaml.Node, path string) (value any, bad bool) {
	switch {
	case empty(n) || n.Kind == yaml.MappingNode:
		w.wrongType(n, path, commandLine{}.allowed())
		return nil, true
	case n.Kind == yaml.SequenceNode:
		return w.arguments(n, path)
	case strings.TrimSpace(n.Value) == "":
		w.report(n, "%s is empty, allowed: %s", path, commandLine{}.allowed())
		return nil, true
	case noNUL(n.Value) != nil:
		w.report(n, "%s holds a NUL character, allowed: any other", path)
		return nil, true
	}
	return []string{"/bin/sh", "-c", n.Value}, false
}

// arguments reads a command that is a list. Each item reaches the child
// exactly as written.
func (w *walk) arguments(n *yaml.Node, path string) (value any, bad bool) {
	if len(n.Content) == 0 {
		w.report(n, "%s is empty, allowed: %s", path, commandLine{}.allowed())
		return nil, true
	}
	var argv []string
	for i, item := range n.Content {
		what := "an argument of " + path
		if i == 0 {
			what = "the program of " + path
		}
		if !w.plain(item) {
			bad = true
			continue
		}
		switch {
		case item.Kind != yaml.ScalarNode:
			w.wrongType(item, what, "a text")
			bad = true
		case item.Value == "" && (i == 0 || item.Style == 0):
			w.report(item, `%s has no value, allowed: a text; an empty argument is ""`, what)
			bad = true
		case noNUL(item.Value) != nil:
			w.report(item, "%s holds a NUL character, allowed: any other", what)
			bad = true
		}
		argv = append(argv, item.Value)
	}
	return argv, bad
}

// environment reads variables, as a map[string]string. Each value reaches the
// child exactly as written; one that is left out is empty.
func (w *walk) environment(n *yaml.Node, path string) (value any, bad bool) {
	if n.Kind != yaml.MappingNode {
		w.wrongType(n, path, environment{}.allowed())
		return nil, true
	}
	env := make(map[string]string)
	for _, p := range w.pairs(n) {
		if wrong := wrongEnvName(p.key.Value); wrong != "" {
			w.report(p.key, "the name %s %s", short(p.key.Value), wrong)
			bad = true
		}
		if !w.plain(p.value) {
			bad = true
			continue
		}
		switch {
		case p.value.Kind != yaml.ScalarNode:
			w.wrongType(p.value, path+"."+p.key.Value, "a text")
			bad = true
		case noNUL(p.value.Value) != nil:
			w.report(p.value, "%s.%s holds a NUL character, allowed: any other", path, p.key.Value)
			bad = true
		}
		env[p.key.Value] = p.value.Value
	}
	return env, bad
}

// wrongEnvName is what is wrong with the name of a variable, and what is
// allowed; "" where it is right.
func wrongEnvName(name string) string {
	switch {
	case !envNameForm.MatchString(name):
		return "is no name of a variable, allowed: letters, digits and _, not beginning with a digit"
	case strings.HasPrefix(name, ownPrefix):
		return "is one of the supervisor's own, allowed: names that do not begin with " + ownPrefix
	}
	return ""
}

// actorList reads names of actors, as a []string, with the node of each.
// Whether there are such actors is for later.
func (w *walk) actorList(n *yaml.Node, path string) (value any, items []*yaml.Node, bad bool) {
	if n.Kind != yaml.SequenceNode {
		w.wrongType(n, path, actorList{}.allowed())
		return nil, nil, true
	}
	if len(n.Content) > maxActors {
		w.report(n, "%s is too long, allowed: at most %d names", path, maxActors)
		return nil, nil, true
	}
	names, seen := []string(nil), make(map[string]bool)
	for _, item := range n.Content {
		switch {
		case !w.plain(item):
		case item.Kind != yaml.ScalarNode || empty(item):
			w.wrongType(item, "an entry of "+path, "the name of an actor")
		case seen[item.Value]:
			w.report(item, "%s names %s twice, allowed: once", path, short(item.Value))
		default:
			seen[item.Value] = true
			names, items = append(names, item.Value), append(items, item)
		}
	}
	return names, items, false
}
