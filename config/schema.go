package config

import (
	"encoding/json"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Schema is the JSON Schema of actors.yaml (draft 7, which editors know best),
// made from the same table as everything else. It ships as
// docs/actors.schema.json.
//
// It holds the form: keys, types, words and bounds. What takes the whole file
// to see is left to [Parse]: modes, circles, a command that is missing.
func Schema() []byte {
	top := mappingSchema(fileKeys)
	top.Schema = "http://json-schema.org/draft-07/schema#"
	top.Title = "actors.yaml of sovereign"
	top.Required = []string{"actors"}
	top.Properties["actors"] = &jsonschema.Schema{
		Type:                 "object",
		Description:          find(fileKeys, "actors").meaning,
		MinProperties:        new(1),
		PropertyNames:        &jsonschema.Schema{Pattern: namePattern},
		AdditionalProperties: &jsonschema.Schema{Ref: "#/definitions/actor"},
	}
	top.Properties["defaults"] = &jsonschema.Schema{Ref: "#/definitions/actor"}
	actor := mappingSchema(actorKeys)
	actor.Description = "An actor, or the defaults of all."
	top.Definitions = map[string]*jsonschema.Schema{"actor": actor}

	text, err := json.MarshalIndent(top, "", "  ")
	if err != nil {
		panic("config: the schema is no JSON: " + err.Error())
	}
	return append(text, '\n')
}

// mappingSchema is a mapping of keys and of nothing else.
func mappingSchema(keys []*key) *jsonschema.Schema {
	s := &jsonschema.Schema{
		Type:                 "object",
		Properties:           make(map[string]*jsonschema.Schema),
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}}, // false
		PropertyOrder:        names(keys),
	}
	for _, k := range keys {
		inner := k.schemaOf()
		inner.Description = k.meaning
		if k.modes != nil {
			inner.Description += " Only in mode " + strings.Join(modeNames(k.modes), " and ") + "."
		}
		s.Properties[k.name] = inner
	}
	return s
}

func (k *key) schemaOf() *jsonschema.Schema {
	if k.keys != nil {
		return mappingSchema(k.keys)
	}
	s := k.kind.schema()
	if k.def != "" {
		shown, err := json.Marshal(k.kind.show(k.standard()))
		if err != nil {
			panic("config: the default of " + k.name + " is no JSON: " + err.Error())
		}
		s.Default = shown
	}
	return s
}
