package config

import (
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// envFile reads the file that env_file names at n, once for all actors. It is
// nil where something is wrong with it; that has been reported.
//
// The format is one NAME=VALUE on a line. Lines that are blank, or whose first
// character besides blanks is #, say nothing. The value is everything after
// the first =, as it stands, blanks and # included; where it is in single or
// double quotes, those two are taken off and nothing else happens. A quote of
// the kind that surrounds it cannot be inside.
func (w *walk) envFile(name string, n *yaml.Node) map[string]string {
	path := w.absolute(name)
	if env, read := w.envFiles[path]; read {
		return env
	}
	w.envFiles[path] = nil
	text, wrong := read(path)
	if wrong != "" {
		w.report(n, "env_file %s: %s", path, wrong)
		return nil
	}
	shown := path
	if !filepath.IsAbs(name) {
		// As the user would write it from where they are.
		shown = filepath.Join(filepath.Dir(w.path), name)
	}
	env, found := parseEnvFile(shown, text)
	if found != nil {
		w.found = append(w.found, found...)
		return nil
	}
	w.envFiles[path] = env
	return env
}

// parseEnvFile reads text as the env file at path.
func parseEnvFile(path string, text []byte) (map[string]string, []Problem) {
	if len(text) > maxText {
		return nil, alone(path, 0, 0, "the file is too large, allowed: at most "+FormatSize(maxText)).List
	}
	env, lines := make(map[string]string), make(map[string]int)
	var found []Problem
	number := 0
	for line := range strings.Lines(strings.TrimPrefix(string(text), byteOrderMark)) {
		number++
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		if start := strings.TrimLeft(line, " \t"); start == "" || start[0] == '#' {
			continue
		}
		name, value, column, wrong := envLine(line)
		if first := lines[name]; wrong == "" && first > 0 {
			column, wrong = 1, fmt.Sprintf("%s is given twice, first in line %d, allowed: once", name, first)
		}
		if wrong != "" {
			found = append(found, Problem{path, number, column, wrong})
			continue
		}
		env[name], lines[name] = value, number
	}
	return env, found
}

// envLine reads one line, or says what is wrong with it and in which column.
// It does not repeat values, which may be secrets.
func envLine(line string) (name, value string, column int, wrong string) {
	if at := strings.IndexRune(line, 0); at >= 0 {
		return "", "", utf8.RuneCountInString(line[:at]) + 1, "there is a NUL character, allowed: any other"
	}
	for at, r := range line {
		if r == utf8.RuneError && !strings.HasPrefix(line[at:], "\ufffd") {
			return "", "", utf8.RuneCountInString(line[:at]) + 1, "a byte is no UTF-8, allowed: text in UTF-8"
		}
	}
	name, value, found := strings.Cut(line, "=")
	if !found {
		return "", "", 1, "there is no = in the line, allowed: NAME=VALUE, or # and a comment"
	}
	if bad := wrongEnvName(name); bad != "" {
		if strings.HasPrefix(name, "export ") {
			bad += "; without export"
		}
		return "", "", 1, "the name " + short(name) + " " + bad
	}
	value, ok := unquoted(value)
	if !ok {
		return "", "", utf8.RuneCountInString(name) + 2,
			"the quotes do not surround the whole value, allowed: none, or one at each end and none of the same kind inside"
	}
	return name, value, 0, ""
}

// unquoted takes the quotes off that surround value; false where it begins
// with one and they do not surround it.
func unquoted(value string) (string, bool) {
	if value == "" || value[0] != '"' && value[0] != '\'' {
		return value, true
	}
	quote := value[:1]
	inner, closed := strings.CutSuffix(value[1:], quote)
	return inner, closed && !strings.Contains(inner, quote)
}
