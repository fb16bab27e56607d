package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sovereign-run/sovereign/refusal"
)

// A Problem is one thing wrong with the file, and where it stands.
type Problem struct {
	Path    string // as the user gave it; of the env_file where it stands there
	Line    int    // from 1; 0 where the file as a whole is meant
	Column  int    // from 1, in characters
	Message string // what is wrong, what is allowed
}

// String is the problem on one line: PATH:LINE:COLUMN: MESSAGE.
func (p Problem) String() string {
	if p.Line == 0 {
		return p.Path + ": " + p.Message
	}
	return fmt.Sprintf("%s:%d:%d: %s", p.Path, p.Line, p.Column, p.Message)
}

// Problems is the error of [Load] and [Parse]: everything that is wrong, in
// the order of the file. It holds a refusal of the category bad_request, which
// errors.As and refusal.Of find.
type Problems struct {
	List []Problem // never empty
}

// Error prints each problem on a line of its own.
func (p *Problems) Error() string {
	lines := make([]string, len(p.List))
	for i, one := range p.List {
		lines[i] = one.String()
	}
	return strings.Join(lines, "\n")
}

// Unwrap is the refusal that the command line reports: category bad_request,
// the message being the lines of Error.
func (p *Problems) Unwrap() error {
	return refusal.New(refusal.BadRequest, p.Error(), "",
		"correct the file, then: sovereign check "+p.List[0].Path)
}

// alone is a Problems of one.
func alone(path string, line, column int, message string) *Problems {
	return &Problems{List: []Problem{{path, line, column, message}}}
}

// problems sorts what was found, those of file first, and leaves out what was
// found twice: a default is judged once for each actor that it reaches.
func problems(file string, found []Problem) *Problems {
	foreign := func(p Problem) int {
		if p.Path == file {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(found, func(a, b Problem) int {
		return cmp.Or(
			cmp.Compare(foreign(a), foreign(b)),
			cmp.Compare(a.Path, b.Path),
			cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.Message, b.Message),
		)
	})
	return &Problems{List: slices.Compact(found)}
}
