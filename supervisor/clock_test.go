package supervisor_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// I1: the wall clock was set, and processes stood in their states for hours, or timed
// out at once. Every wait of the supervisor is a timer of the monotonic clock or an
// instant of the lease clock; the wall clock is read to be shown, and in these
// functions alone. (A step itself cannot be tried on a machine that others use.
// What is on record over a restart: mailbox.TestWallStep_MovesDelaysAndNoLease.)
func TestWallClock_DecidesNothing(t *testing.T) {
	shown := []string{
		"supervisor/ready_notify.go:read",         // compared with a time of this process, which has a monotonic part
		"supervisor/spawn.go:launch",              // in the environment and in the record of a child
		"supervisor/spawn.go:event",               // in the journal
		"supervisor/status.go:Status",             // how long a state has lasted, by the monotonic part
		"supervisor/process/reap_linux.go:exitOf", // when a child was seen to end
		"supervisor/process/host_other.go:reap",
		"supervisor/process/host_linux.go:inherit",   // when a child that was passed on was found to have ended
		"supervisor/ready_notify.go:pause",           // a deadline long past: an interruption
		"supervisor/process/leaf_linux.go:waitEmpty", // a deadline long past: an interruption
	}
	var found []string
	for _, folder := range []string{".", "process"} {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range file.Decls {
				f, ok := d.(*ast.FuncDecl)
				if !ok {
					continue
				}
				ast.Inspect(f, func(n ast.Node) bool {
					if s, ok := n.(*ast.SelectorExpr); ok {
						if p, ok := s.X.(*ast.Ident); ok && p.Name == "time" && (s.Sel.Name == "Now" || s.Sel.Name == "Unix" || s.Sel.Name == "UnixMilli") {
							found = append(found, "supervisor/"+filepath.ToSlash(name)+":"+f.Name.Name)
						}
					}
					return true
				})
			}
		}
	}
	for _, place := range found {
		if !slices.Contains(shown, place) {
			t.Errorf("%s reads the wall clock", place)
		}
	}
	for _, place := range shown {
		if !slices.Contains(found, place) {
			t.Errorf("%s does not read it any more", place)
		}
	}
}
