package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/refusal"
)

// The exit statuses of every command.
const (
	exitDone    = 0 // it was done
	exitFailed  = 1 // it failed, or what was asked about is not well
	exitUsage   = 2 // the command line, the request or actors.yaml is wrong
	exitRefused = 3 // it was refused; the category says why
	exitNothing = 4 // there is none: no message to claim, no such message
)

// A statusError ends a command with a status of its own. Where err is nil the
// answer has been written already and nothing more is told.
type statusError struct {
	status int
	err    error
}

func (e statusError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.status)
	}
	return e.err.Error()
}

func (e statusError) Unwrap() error { return e.err }

// statusOf is the only place where an error becomes an exit status.
func statusOf(err error) int {
	if err == nil {
		return exitDone
	}
	if own, ok := errors.AsType[statusError](err); ok {
		return own.status
	}
	return statusOfCategory(refusal.Of(err).Category)
}

func statusOfCategory(c refusal.Category) int {
	switch c {
	case refusal.BadRequest:
		return exitUsage
	case refusal.MessageMissing:
		return exitNothing
	case refusal.Failed, refusal.Unavailable, refusal.OutcomeUnknown:
		return exitFailed
	default:
		return exitRefused
	}
}

// usage is the refusal of a command line that cannot be meant.
func usage(message, why, next string) error {
	return refusal.New(refusal.BadRequest, message, why, next)
}

// errorJSON is an error as programs read it.
type errorJSON struct {
	Category  refusal.Category `json:"category"`
	Message   string           `json:"message"`
	Why       string           `json:"why"`
	Next      string           `json:"next"`
	Retryable bool             `json:"retryable"`
	Problems  []problemJSON    `json:"problems,omitempty"` // of an actors.yaml
}

type problemJSON struct {
	Path    string `json:"path"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
}

func errorOf(err error) errorJSON {
	r := refusal.Of(err)
	return errorJSON{Category: r.Category, Message: r.Message, Why: r.Why, Next: r.Next, Retryable: r.Retryable}
}

// report tells err: for people on stderr, with --json as one line on stdout.
func report(err error, asJSON bool, stdout, stderr io.Writer) {
	if own, ok := errors.AsType[statusError](err); err == nil || ok && own.err == nil {
		return
	}
	r := refusal.Of(err)
	problems, isProblems := errors.AsType[*config.Problems](err)
	switch {
	case asJSON:
		e := errorOf(err)
		if isProblems {
			for _, p := range problems.List {
				e.Problems = append(e.Problems, problemJSON(p))
			}
		}
		line, _ := json.Marshal(map[string]errorJSON{"error": e}) // strings, numbers and a bool: cannot fail
		fmt.Fprintf(stdout, "%s\n", line)
	case isProblems: // a list for editors: PATH:LINE:COLUMN: and nothing else
		fmt.Fprintln(stderr, printableLines(problems.Error()))
		if _, err := os.Stat(problems.List[0].Path); errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintln(stderr, "`sovereign init` writes a first one")
		}
	default:
		fmt.Fprint(stderr, explain(r))
	}
}

// explain is a refusal in words: what happened and its category, why, and what
// to do next, a line each.
func explain(r *refusal.Error) string {
	var b strings.Builder
	fmt.Fprintf(&b, "sovereign: %s", printableLines(r.Message))
	if r.Category != refusal.Failed && r.Category != "" {
		fmt.Fprintf(&b, " [%s]", r.Category)
	}
	b.WriteByte('\n')
	if r.Why != "" {
		fmt.Fprintf(&b, "  why:  %s\n", printableLines(r.Why))
	}
	if r.Next != "" {
		fmt.Fprintf(&b, "  next: %s\n", printableLines(r.Next))
	}
	return b.String()
}
