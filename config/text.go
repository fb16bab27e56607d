package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// A text is a string that check accepts; the error completes a sentence that
// begins with the text. No text holds a NUL byte: the kernel ends every string
// there.
type text struct {
	what  string // to complete "…, allowed: "
	check func(string) error
	types []string // of JSON, for editors; empty: a string
}

func (k text) allowed() string { return k.what }

func (k text) parse(s string, _ bool) (any, error) {
	if err := noNUL(s); err != nil {
		return nil, err
	}
	if s == "" {
		return nil, errors.New("is empty")
	}
	if k.check != nil {
		if err := k.check(s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (k text) schema() *jsonschema.Schema {
	if len(k.types) > 0 {
		return &jsonschema.Schema{Types: k.types, MinLength: new(1)}
	}
	return &jsonschema.Schema{Type: "string", MinLength: new(1)}
}

func (k text) show(value any) any { return value }

func noNUL(s string) error {
	if strings.ContainsRune(s, 0) {
		return errors.New("holds a NUL character")
	}
	return nil
}

// account is the name or the number of a user or group. It is looked up when a
// process is started, not here.
func account(of string) text {
	return text{
		what:  "the name or the number of a " + of,
		types: []string{"string", "integer"},
		check: func(s string) error {
			if strings.ContainsAny(s, ":/, \t\n") || strings.HasPrefix(s, "-") {
				return errors.New("is no name of a " + of)
			}
			return nil
		},
	}
}

// checkAddress accepts host:port.
func checkAddress(s string) error {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return errors.New("is no host:port")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return errors.New("has no port from 1 to 65535")
	}
	if host == "" {
		return errors.New("has no host")
	}
	return nil
}

// checkURL accepts an http or https URL with a host.
func checkURL(s string) error {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return errors.New("is no URL of http or https")
	}
	return nil
}

// An octal is a file mode mask, kept as an int.
type octal struct{}

const octalPattern = `^[0-7]{3,4}$`

var octalForm = regexp.MustCompile(octalPattern)

func (octal) allowed() string { return `three or four octal digits from "000" to "0777"` }

func (octal) parse(s string, _ bool) (any, error) {
	if !octalForm.MatchString(s) {
		return nil, errors.New("is no octal mask")
	}
	n, err := strconv.ParseUint(s, 8, 32)
	if err != nil || n > 0o777 {
		return nil, errors.New("is beyond 0777")
	}
	return int(n), nil
}

func (octal) schema() *jsonschema.Schema {
	return &jsonschema.Schema{Types: []string{"string", "integer"}, Pattern: octalPattern}
}

func (octal) show(value any) any { return fmt.Sprintf("%04o", value) }
