package recovery

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/sovereign-run/sovereign/mailbox"
)

// A Workspace is the folder of one attempt: runs/ID-ATTEMPT in the store's
// folder, or runs.UID/ID-ATTEMPT where the child runs as another user, who
// could not pass through runs (0700) and passes through runs.UID (0711).
type Workspace struct {
	Path    string
	Message mailbox.ID
	Attempt int
	Result  bool // no folder: runs/results/ID.ATTEMPT, a result too large for the store
}

// Workspaces are the workspaces of one store's folder.
type Workspaces struct{ data string }

// NewWorkspaces returns the workspaces in the store's folder data. Nothing is
// made.
func NewWorkspaces(data string) Workspaces { return Workspaces{data: data} }

// Root is the folder that holds the workspaces of children that run as uid; -1
// is the supervisor's own user.
func (w Workspaces) Root(uid int) string {
	if uid < 0 {
		return filepath.Join(w.data, "runs")
	}
	return filepath.Join(w.data, "runs."+strconv.Itoa(uid))
}

// Of returns where the workspace of an attempt lies; it is not made.
func (w Workspaces) Of(id mailbox.ID, attempt, uid int) Workspace {
	return Workspace{Path: filepath.Join(w.Root(uid), id.String()+"-"+strconv.Itoa(attempt)), Message: id, Attempt: attempt}
}

// Result returns where the result of an attempt lies that is too long to be kept
// with its message; it is not made.
func (w Workspaces) Result(id mailbox.ID, attempt int) Workspace {
	return Workspace{Path: filepath.Join(w.results(), id.String()+"."+strconv.Itoa(attempt)), Message: id, Attempt: attempt, Result: true}
}

func (w Workspaces) results() string { return filepath.Join(w.Root(-1), "results") }

// Remove removes a workspace with all that is in it, also folders that their
// owner may not write. That it is gone already is no error. Links in it are
// removed, not followed. What is mounted in it, such as a folder of somebody's that
// was bound into it, is left, with an error: what it shows is no part of the workspace.
func (w Workspaces) Remove(ws Workspace) error { return removeTree(ws.Path) }

// List returns the workspaces that exist, and the results that lie in files.
func (w Workspaces) List() ([]Workspace, error) {
	all, err := os.ReadDir(w.data)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var roots []string
	for _, e := range all {
		if e.IsDir() && (e.Name() == "runs" || strings.HasPrefix(e.Name(), "runs.")) {
			roots = append(roots, filepath.Join(w.data, e.Name()))
		}
	}
	var out []Workspace
	for _, root := range roots {
		entries, err := os.ReadDir(root)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			id, attempt, ok := parseWorkspace(e.Name(), "-")
			if ok && e.IsDir() {
				out = append(out, Workspace{Path: filepath.Join(root, e.Name()), Message: id, Attempt: attempt})
			}
		}
	}
	results := w.results()
	entries, err := os.ReadDir(results)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		if id, attempt, ok := parseWorkspace(e.Name(), "."); ok {
			out = append(out, Workspace{Path: filepath.Join(results, e.Name()), Message: id, Attempt: attempt, Result: true})
		}
	}
	return out, nil
}

func parseWorkspace(name, separator string) (mailbox.ID, int, bool) {
	first, second, ok := strings.Cut(name, separator)
	if !ok {
		return 0, 0, false
	}
	id, err := mailbox.ParseID(first)
	attempt, err2 := strconv.Atoi(second)
	return id, attempt, err == nil && err2 == nil && attempt > 0
}
