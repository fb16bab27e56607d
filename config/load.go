package config

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"go.yaml.in/yaml/v4"
)

// Load reads the file at path, and the files that its env_file keys name, and
// checks them. The error is [*Problems]. Nothing is written.
func Load(path string) (*File, error) {
	text, wrong := read(path)
	if wrong != "" {
		return nil, alone(path, 0, 0, wrong)
	}
	return Parse(path, text)
}

// Parse checks text as the contents of the file at path, which is not read and
// need not exist: its folder is what paths are relative to, and messages name
// it as given here. Files named by env_file are read. The error is
// [*Problems].
func Parse(path string, text []byte) (*File, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, alone(path, 0, 0, "find the folder of the file: "+err.Error())
	}
	root, second, problem := document(path, text)
	if problem != nil {
		return nil, problem
	}
	w := &walk{path: path, folder: filepath.Dir(absolute), envFiles: make(map[string]map[string]string)}
	if second != nil {
		w.report(second, "a further document begins here, allowed: one document")
	}
	file := w.file(root)
	if len(w.found) > 0 {
		return nil, problems(path, w.found)
	}
	file.Path = absolute
	return file, nil
}

// read is the contents of the regular file at path, or what is wrong with it.
// It does not wait on a pipe or a device.
func read(path string) (text []byte, wrong string) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, "there is no such file"
	case err != nil:
		return nil, "it cannot be read: " + reason(err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, "it cannot be read: " + reason(err)
	case info.IsDir():
		return nil, "it is a directory, allowed: a file"
	case !info.Mode().IsRegular():
		return nil, "it is a pipe, socket or device, allowed: a regular file"
	}
	// One byte beyond the most tells a file that is too large.
	text, err = io.ReadAll(io.LimitReader(f, maxText+1))
	if err != nil {
		return nil, "it cannot be read: " + reason(err)
	}
	return text, ""
}

// reason is err without the operation and the path, which the line names.
func reason(err error) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err.Error()
	}
	return err.Error()
}

// absolute resolves a path of the file. Symbolic links are left for whoever
// opens it: a deployment switched by a link is seen at the next start.
func (w *walk) absolute(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(w.folder, path)
}

// A declared actor is an actor as the file has it, before defaults.
type declared struct {
	name *yaml.Node
	own  settings
}

// file reads the whole file.
func (w *walk) file(root *yaml.Node) *File {
	if !w.plain(root) {
		return nil
	}
	if empty(root) {
		w.report(root, emptyFile)
		return nil
	}
	if root.Kind != yaml.MappingNode {
		w.wrongType(root, "the file", "a mapping of "+joined(names(fileKeys), " and "))
		return nil
	}
	top := make(settings)
	var actors []declared
	seen := false
	for _, p := range w.pairs(root) {
		switch k := find(fileKeys, p.key.Value); {
		case k == nil:
			w.unknown(p.key, "", fileKeys)
			w.skip(p.value)
		case k.name == "actors":
			actors, seen = w.actors(p.value), true
		default:
			w.setting(p, k.name, k, top)
		}
	}
	if !seen {
		w.report(root, "there is no actors, allowed: a mapping with at least one actor")
	}
	defaults := make(settings)
	for path, s := range top {
		if inner, found := strings.CutPrefix(path, "defaults."); found {
			defaults[inner] = s
		}
	}
	file := &File{Data: w.absolute(find(fileKeys, "data").standard().(string))}
	if s, given := top["data"]; given && !s.bad {
		file.Data = w.absolute(s.value.(string))
	}
	merged := make([]settings, len(actors))
	for i, d := range actors {
		var a Actor
		a, merged[i] = w.actor(d, defaults)
		file.Actors = append(file.Actors, a)
	}
	w.order(actors, merged)
	return file
}

// actors reads what stands under the key actors.
func (w *walk) actors(n *yaml.Node) []declared {
	const allowed = "a mapping with at least one actor"
	if !w.plain(n) {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		w.wrongType(n, "actors", allowed)
		return nil
	}
	if len(n.Content) == 0 {
		w.report(n, "actors is empty, allowed: %s", allowed)
		return nil
	}
	var list []declared
	for i, p := range w.pairs(n) {
		if i == maxActors {
			w.report(p.key, "there are too many actors, allowed: %d", maxActors)
			break
		}
		if name := p.key.Value; !nameForm.MatchString(name) {
			w.report(p.key, "bad name %s of an actor, allowed: %s", short(name), nameRule)
		}
		d := declared{name: p.key, own: make(settings)}
		switch {
		case !w.plain(p.value):
		case p.value.Kind != yaml.MappingNode:
			w.wrongType(p.value, "actor "+p.key.Value, "a mapping with at least command")
		default:
			w.mapping(p.value, "", actorKeys, d.own)
			list = append(list, d)
			continue
		}
		// Its name is known to others, and nothing more is asked of it.
		d.own = nil
		list = append(list, d)
	}
	return list
}

// maxActors bounds the actors of a file, and what one of them can wait for.
const maxActors = 1024

const nameRule = "1 to 63 of a-z, 0-9, dot, underscore and dash, not beginning with a sign"
