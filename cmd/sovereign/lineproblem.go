package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/protocol"
)

// lineProblem is in words what is wrong with a line that could not be decoded into a
// value of type t.
func lineProblem(err error, t reflect.Type) string {
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		// Embedded structs are no part of what the line says.
		path := strings.Split(e.Field, ".")
		field := path[len(path)-1]
		if field == "" {
			return "a line must be an object, not " + article(e.Value)
		}
		return fmt.Sprintf("%q must be %s, not %s", field, kindInWords(e.Type), article(e.Value))
	}
	if problem, ok := protocol.TimeProblem(err); ok {
		return problem
	}
	if _, ok := errors.AsType[*json.SyntaxError](err); ok || errors.Is(err, io.ErrUnexpectedEOF) {
		return "it is no JSON: " + err.Error()
	}
	text := strings.TrimPrefix(err.Error(), "json: ")
	quoted, unknown := strings.CutPrefix(text, "unknown field ")
	name, bad := strconv.Unquote(quoted)
	if !unknown || bad != nil {
		return text
	}
	text = fmt.Sprintf("unknown field %q", protocol.Cut(name, 60))
	if meant := config.Closest(name, fieldNames(t)); meant != "" {
		text += fmt.Sprintf(", did you mean %q?", meant)
	}
	return text
}

// kindInWords is what a field of type t takes.
func kindInWords(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[protocol.Duration]():
		return `a duration such as "10s"`
	case reflect.TypeFor[protocol.Body]():
		return `a string, or {"base64": "…"}`
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Map, reflect.Struct:
		return "an object"
	case reflect.Slice, reflect.Array:
		return "a list"
	default:
		return "a whole number"
	}
}

// article is a JSON value's kind, as the decoder names it, with its article.
func article(kind string) string {
	switch {
	case strings.HasPrefix(kind, "number "):
		return protocol.Cut(strings.TrimPrefix(kind, "number "), 60)
	case strings.HasPrefix(kind, "array"):
		return "a list"
	case strings.HasPrefix(kind, "object"):
		return "an " + kind
	case kind == "nothing":
		return kind
	default:
		return "a " + kind
	}
}

// fieldNames are the names of t in JSON, those of embedded structs too, but for the
// line's number, which no file says.
func fieldNames(t reflect.Type) []string {
	var out []string
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			out = append(out, fieldNames(f.Type)...)
		case name != "" && name != "-" && name != "line":
			out = append(out, name)
		}
	}
	return out
}
