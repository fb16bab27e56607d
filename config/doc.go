// Package config answers one question: what does an actors.yaml say?
//
// [Load] and [Parse] turn the file into a [File]: checked, every default
// filled in, every path absolute. Or they refuse it with [*Problems], all of
// its problems at once, each with the line and column at which it stands and
// with what is allowed there.
//
// One table drives everything: keys.go lists each key with its kind of value,
// its default, the modes in which it makes sense and its meaning. The walk over
// the YAML nodes, the suggestions for misspelt keys, the JSON Schema for
// editors ([Schema]), the reference page docs/actors.md and [Describe] all read
// that table and nothing else.
//
//	text ─► document.go   encoding, YAML syntax      ─► node tree
//	     ─► walk.go       keys, kinds, aliases, tags ─► settings, by dotted path
//	     ─► actor.go      defaults:, own, built in   ─► Actor, checked as a whole
//	     ─► after.go      the order of starting      ─► File
//
// What is promised: no value is expanded or interpreted on its way to a child.
// The texts of `command` and `env` arrive byte for byte as they stand in the
// file, after YAML's own rules for quotes and line folding; `0123`, `no`,
// `22:22` and `$HOME` are four texts. Nothing is read besides the file and the
// files that `env_file` names.
//
// What is not: users, groups, programs and folders are not looked up. They
// belong to the machine and the moment at which a process is started.
package config
