package protocol

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/sovereign-run/sovereign/refusal"
)

const nextProtocol = "see docs/protocol.md for the methods and their params"

// ParseRequest reads one line as a request. What is no request is returned as
// the error to answer, together with the id to answer it under: that of the
// line where it could be read, else Null. Members that are not known are
// ignored, so that newer clients can speak to an older supervisor.
func ParseRequest(line []byte) (Request, *Error) {
	if req, ok := scanRequest(line); ok {
		return req, nil
	}
	return parseRequest(line)
}

func parseRequest(line []byte) (Request, *Error) {
	var req Request
	invalid := func(code int, message, why string) (Request, *Error) {
		if req.ID == "" {
			req.ID = Null
		}
		return req, ErrorOf(refusal.New(refusal.BadRequest, message, why, nextProtocol)).Coded(code)
	}
	if line[0] == '[' {
		return invalid(CodeInvalidRequest, "a batch is not accepted", "each request stands on a line of its own; "+
			"`settle` ends several claims in one request")
	}
	if err := json.Unmarshal(line, &req); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			if wrong.Field == "id" {
				req.ID = Null
			}
			return invalid(CodeInvalidRequest, "the line is no request", wrongType(wrong))
		}
		return invalid(CodeParse, "the line is no JSON", err.Error())
	}
	switch {
	case req.JSONRPC != "2.0":
		return invalid(CodeInvalidRequest, "the line is no request", `jsonrpc must be "2.0"`)
	case req.Method == "":
		return invalid(CodeInvalidRequest, "the line is no request", "it names no method")
	case len(req.Params) > 0 && req.Params[0] != '{' && string(req.Params) != "null":
		return invalid(CodeInvalidParams, "the params of "+Cut(req.Method, 40)+" are wrong",
			"they must be an object, with names; they are of the kind "+kindOf(req.Params))
	}
	return req, nil
}

// ParseParams reads params into out, which is the zero value of a struct, and
// leaves it at that where there are none. A Body in it may be part of params. A
// value of the wrong type is refused, bad_request, and the refusal names the field;
// so is a string that is not UTF-8, unless it is a reason or a progress.
func ParseParams[P any](method string, params json.RawMessage, out *P) error {
	if len(params) == 0 || scanParams(params, out) {
		return nil
	}
	// The rare forms are read into a value of their own: what encoding/json gets a
	// pointer to would be on the heap, for all forms.
	own := new(P)
	err := json.Unmarshal(params, own)
	*out = *own
	if err == nil {
		if _, later := any(own).(*SettleItems); later {
			return nil // each item is parsed, and refused, by itself
		}
		return checkText(method, params)
	}
	why := err.Error()
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		why = wrongType(wrong)
	} else if problem, ok := TimeProblem(err); ok {
		why = problem
	}
	return refusal.New(refusal.BadRequest, "the params of "+Cut(method, 40)+" are wrong", why, nextProtocol).Because(err)
}

// TimeProblem says in words what is wrong with a time, if err is about one.
func TimeProblem(err error) (string, bool) {
	const form = "write it as 2026-01-31T12:00:00Z"
	switch e, ok := errors.AsType[*time.ParseError](err); {
	case ok:
		return strconv.Quote(Cut(strings.Trim(e.Value, `"`), 60)) + " is no time: " + form, true
	case strings.HasPrefix(err.Error(), "Time.UnmarshalJSON: "): // of package time, which has no type for it
		return "a time must be a string: " + form, true
	}
	return "", false
}

// wrongType says which field holds what instead of what. Embedded structs, whose names
// begin with a capital, are no part of what the line says.
func wrongType(e *json.UnmarshalTypeError) string {
	names := slices.DeleteFunc(strings.Split(e.Field, "."), func(name string) bool { return name == "" || unicode.IsUpper(rune(name[0])) })
	field := strings.Join(names, ".")
	if field == "" {
		field = "the line"
	}
	return fmt.Sprintf("%s must be %s, not %s", field, wanted(e.Type), e.Value)
}

// wanted describes a Go type in terms of JSON.
func wanted(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[Token]():
		return "a token, a whole number from 1 to 9007199254740991"
	case reflect.TypeFor[Duration]():
		return `a duration, a string with a unit as in "10s", not negative`
	case reflect.TypeFor[Body]():
		return `a string of UTF-8 or {"base64": "…"}`
	case reflect.TypeFor[ID]():
		return "a number, a string of UTF-8 or null, of at most 1024 bytes"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return "a whole number"
	case reflect.String:
		return "a string"
	case reflect.Slice:
		return "a list"
	}
	return "an object"
}
