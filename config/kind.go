package config

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// A kind is what the value of a key looks like.
type kind interface {
	// allowed says what may stand there, to complete "…, allowed: ".
	allowed() string
	// schema is the same for an editor.
	schema() *jsonschema.Schema
	// show is a value of the kind as a file would hold it, for JSON.
	show(value any) any
}

// A scalar is a kind whose value is one text. parse gets the text exactly as it
// stands in the file, and whether it stands there in quotes; its error
// completes a sentence that begins with the text.
type scalar interface {
	kind
	parse(text string, quoted bool) (any, error)
}

// A duration is a time.Duration of at least min.
type duration struct{ min time.Duration }

const moment = time.Nanosecond // the shortest duration that is not zero

func (k duration) allowed() string {
	switch k.min {
	case 0:
		return "a duration with its unit, such as 0s, 100ms, 30s, 10m or 30d"
	case moment:
		return "a duration longer than zero with its unit, such as 100ms, 30s, 10m or 30d"
	}
	return "a duration of at least " + FormatDuration(k.min) + " with its unit, such as 30s, 10m or 30d"
}

func (k duration) parse(text string, _ bool) (any, error) {
	d, err := ParseDuration(text)
	if err != nil {
		return nil, err
	}
	if d < k.min {
		return nil, errors.New("is too short")
	}
	return d, nil
}

func (k duration) schema() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", MinLength: new(2), Pattern: durationPattern}
}

func (k duration) show(value any) any { return FormatDuration(value.(time.Duration)) }

// A size is an int64 of bytes, from 1 to max; why is the reason of max.
type size struct {
	max int64
	why string
}

func (k size) allowed() string {
	if k.max < math.MaxInt64 {
		return "a size from 1B to " + FormatSize(k.max) + k.why
	}
	return "a size above zero in B, KiB, MiB or GiB, such as 512MiB"
}

func (k size) parse(text string, _ bool) (any, error) {
	n, err := ParseSize(text)
	switch {
	case err != nil:
		return nil, err
	case n == 0:
		return nil, errors.New("is too small")
	case n > k.max:
		return nil, errors.New("is too large")
	}
	return n, nil
}

func (k size) schema() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Pattern: sizePattern}
}

func (k size) show(value any) any { return FormatSize(value.(int64)) }

// A whole is a whole number from min to max, in decimal.
type whole[T int | int64 | uint64] struct{ min, max T }

var wholeForm = regexp.MustCompile(`^(0|[1-9][0-9]*)$`)

func (k whole[T]) allowed() string {
	if k.min == k.max {
		return fmt.Sprint(k.min)
	}
	return fmt.Sprintf("a whole number from %d to %d", k.min, k.max)
}

func (k whole[T]) parse(text string, quoted bool) (any, error) {
	switch {
	case quoted:
		return nil, errors.New("is a text in quotes")
	case strings.HasPrefix(text, "-"):
		return nil, errors.New("is negative")
	case !wholeForm.MatchString(text):
		return nil, errors.New("is no whole number")
	}
	n, err := strconv.ParseUint(text, 10, 63)
	switch {
	case k.min == k.max && (err != nil || n != uint64(k.min)):
		return nil, errors.New("is not supported")
	case err != nil || n > uint64(k.max):
		return nil, errors.New("is too large")
	case n < uint64(k.min):
		return nil, errors.New("is too small")
	}
	return T(n), nil
}

func (k whole[T]) schema() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "integer", Minimum: new(float64(k.min)), Maximum: new(float64(k.max))}
}

func (k whole[T]) show(value any) any { return value }

// A number is a float64 from min to max, in plain decimal.
type number struct{ min, max float64 }

func (k number) allowed() string {
	return fmt.Sprintf("a number from %v to %v", k.min, k.max)
}

func (k number) parse(text string, quoted bool) (any, error) {
	switch {
	case quoted:
		return nil, errors.New("is a text in quotes")
	case strings.HasPrefix(text, "-"):
		return nil, errors.New("is negative")
	case !bareNumber.MatchString(text):
		return nil, errors.New("is no number")
	}
	n, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || n > k.max:
		return nil, errors.New("is too large")
	case n < k.min:
		return nil, errors.New("is too small")
	}
	return n, nil
}

func (k number) schema() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "number", Minimum: new(k.min), Maximum: new(k.max)}
}

func (k number) show(value any) any { return value }

// A truth is true, or false where it may be.
type truth struct{ only bool } // only: nothing but true

func (k truth) allowed() string {
	if k.only {
		return "true"
	}
	return "true or false"
}

func (k truth) parse(text string, quoted bool) (any, error) {
	switch {
	case quoted:
		return nil, errors.New("is a text in quotes")
	case text == "true":
		return true, nil
	case text == "false" && !k.only:
		return false, nil
	case text == "false":
		return nil, errors.New("says nothing")
	}
	return nil, errors.New("is neither true nor false")
}

func (k truth) schema() *jsonschema.Schema {
	if k.only {
		return &jsonschema.Schema{Enum: []any{true}}
	}
	return &jsonschema.Schema{Type: "boolean"}
}

func (k truth) show(value any) any { return value }

// A choice is one of a few words. meant says what wrong words, in lower case,
// were meant as, where that is more than a slip.
type choice[T ~string] struct {
	words []T
	meant map[string]string
}

func (k choice[T]) texts() []string {
	texts := make([]string, len(k.words))
	for i, w := range k.words {
		texts[i] = string(w)
	}
	return texts
}

func (k choice[T]) allowed() string { return either(k.texts()) }

func (k choice[T]) parse(text string, _ bool) (any, error) {
	if slices.Contains(k.words, T(text)) {
		return T(text), nil
	}
	meant := k.meant[strings.ToLower(text)]
	if meant == "" {
		meant = Closest(text, k.texts())
	}
	if meant != "" {
		return nil, fmt.Errorf("is unknown, did you mean %s?", meant)
	}
	return nil, errors.New("is unknown")
}

func (k choice[T]) schema() *jsonschema.Schema {
	words := make([]any, len(k.words))
	for i, w := range k.words {
		words[i] = string(w)
	}
	return &jsonschema.Schema{Enum: words}
}

func (k choice[T]) show(value any) any { return string(value.(T)) }

// either is "a, b or c".
func either(words []string) string { return joined(words, " or ") }

// joined is words with commas, and word between the last two.
func joined(words []string, word string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + word + words[last]
}
