package config

import (
	"github.com/google/jsonschema-go/jsonschema"
)

// anyScalar is whatever one YAML scalar can look like to an editor: the text of
// an env value or an argument may look like a number.
var anyScalar = []string{"string", "number", "boolean", "null"}

// A commandLine is what to execute, a []string: a list as it is, a text by
// /bin/sh -c.
type commandLine struct{}

func (commandLine) allowed() string {
	return "a list of a program and its arguments, or a text for /bin/sh -c"
}

func (commandLine) schema() *jsonschema.Schema {
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{
		{Type: "string", MinLength: new(1)},
		{Type: "array", MinItems: new(1), Items: &jsonschema.Schema{Types: anyScalar}},
	}}
}

func (commandLine) show(value any) any { return value }

// An environment is a mapping of names to texts, a map[string]string.
type environment struct{}

const envNamePattern = `^[A-Za-z_][A-Za-z0-9_]*$`

func (environment) allowed() string { return "a mapping of names to texts" }

func (environment) schema() *jsonschema.Schema {
	return &jsonschema.Schema{
		Type: "object",
		PropertyNames: &jsonschema.Schema{
			Pattern: envNamePattern,
			Not:     &jsonschema.Schema{Pattern: "^" + ownPrefix},
		},
		AdditionalProperties: &jsonschema.Schema{Types: anyScalar},
	}
}

func (environment) show(value any) any { return value }

// An actorList is a list of actors' names, a []string.
type actorList struct{}

func (actorList) allowed() string { return "a list of actors' names" }

func (actorList) schema() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "array", UniqueItems: true,
		Items: &jsonschema.Schema{Type: "string", Pattern: namePattern}}
}

func (actorList) show(value any) any { return value }
