package server

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// docs/protocol.md lists the methods of control.sock, as the refusal of an unknown
// one says: a method without its place there fails this, and one that is not.
func TestControlMethods_AreListed(t *testing.T) {
	page, err := os.ReadFile("../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(page), "## For people and programs: control.sock\n")
	part, _, _ = strings.Cut(part, "\n## ")
	var listed []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]*) \\|").FindAllStringSubmatch(part, -1) {
		for _, name := range strings.Split(row[1], ", ") {
			listed = append(listed, strings.Trim(name, "`"))
		}
	}
	slices.Sort(listed)
	if want := slices.Sorted(maps.Keys(requests)); !slices.Equal(listed, want) {
		t.Errorf("the page lists\n%q\nand the socket answers\n%q", listed, want)
	}
}
