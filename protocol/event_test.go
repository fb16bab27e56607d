package protocol_test

import (
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

// docs/operating.md lists every kind of event once, and none that there is not: a
// kind without its row fails this, and a row without its kind.
func TestEventKinds_AreListed(t *testing.T) {
	file, err := parser.ParseFile(gotoken.NewFileSet(), "event.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if c, ok := n.(*ast.ValueSpec); ok {
			kind, err := strconv.Unquote(c.Values[0].(*ast.BasicLit).Value)
			if err != nil || kinds[kind] || c.Type == nil {
				t.Errorf("%s is untyped, or %q is there twice", c.Names[0], kind)
			}
			kinds[kind] = true
		}
		return true
	})
	page, err := os.ReadFile("../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (?:supervisor and store|actor|message) \\|").FindAllSubmatch(page, -1) {
		rows = append(rows, string(row[1]))
	}
	slices.Sort(rows)
	if want := slices.Sorted(maps.Keys(kinds)); !slices.Equal(rows, want) {
		t.Errorf("the table of docs/operating.md has\n%q\nand the kinds are\n%q", rows, want)
	}
}
