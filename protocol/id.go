package protocol

import (
	"encoding/json"
	"reflect"
)

// An ID is a request's id as it stands on the wire: a JSON number, a JSON
// string with its quotes, or null. "" means that there was none. An answer
// repeats it unchanged.
type ID string

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
