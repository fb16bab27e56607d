package protocol

import (
	"encoding/json"
	"reflect"
	"strconv"
	"unicode/utf8"
)

// An ID is a request's id as it stands on the wire: a JSON number, a JSON
// string with its quotes, or null. "" means that there was none. An answer
// repeats it unchanged, so that it is bounded, and text.
type ID string

// maxID bounds an id, in bytes as it stands on the wire: with a longer one no answer
// might fit into a line, a refusal neither.
const maxID = 1024

// Null is the id of an answer to what could not be read as a request.
const Null ID = "null"

// MarshalJSON writes the id as it was read; an absent one as null.
func (id ID) MarshalJSON() ([]byte, error) {
	if id == "" {
		return []byte(Null), nil
	}
	return []byte(id), nil
}

// UnmarshalJSON accepts a number, a string or null, and refuses anything else.
func (id *ID) UnmarshalJSON(b []byte) error {
	switch {
	case len(b) > maxID:
		return &json.UnmarshalTypeError{Value: kindOf(b) + " of " + strconv.Itoa(len(b)) + " bytes", Type: reflect.TypeFor[ID]()}
	case !utf8.Valid(b):
		return &json.UnmarshalTypeError{Value: kindOf(b) + " that is not UTF-8", Type: reflect.TypeFor[ID]()}
	case b[0] == '"', b[0] == '-', b[0] >= '0' && b[0] <= '9', string(b) == string(Null):
		*id = ID(b)
		return nil
	}
	return &json.UnmarshalTypeError{Value: kindOf(b), Type: reflect.TypeFor[ID]()}
}

// kindOf names what a JSON value is, for people.
func kindOf(b []byte) string {
	if len(b) == 0 {
		return "nothing"
	}
	switch b[0] {
	case '"':
		return "string"
	case '{':
		return "object"
	case '[':
		return "array"
	case 't', 'f':
		return "bool"
	case 'n':
		return "null"
	}
	return "number"
}
