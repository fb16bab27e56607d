package scripts_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every property of the contract is named in docs/guarantees.md, every test and
// script named there exists, and every report and case listed there is named by a test;
// a case by each test of its row.
func TestGuarantees_NameEveryProperty(t *testing.T) {
	contract, err := os.ReadFile("../docs/contract.md")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../docs/guarantees.md")
	if err != nil {
		t.Fatal(err)
	}
	section := ""
	item := regexp.MustCompile(`^(\d+)\. `)
	for line := range strings.Lines(string(contract)) {
		if rest, ok := strings.CutPrefix(line, "## P"); ok {
			section, _, _ = strings.Cut(rest, ".")
			if !strings.Contains(string(page), "| P"+section) {
				t.Errorf("P%s is not in docs/guarantees.md", section)
			}
		}
		if m := item.FindStringSubmatch(line); m != nil && section != "" {
			if p := "| P" + section + "." + m[1] + " |"; !strings.Contains(string(page), p) {
				t.Errorf("P%s.%s is not in docs/guarantees.md", section, m[1])
			}
		}
	}

	names := map[string]string{} // the comment of each test, by its folder and name as in mailbox.TestX
	declared := regexp.MustCompile(`(?m)((?:^//.*\n)*)^func ((?:Test|Fuzz)\w+)`)
	var comments strings.Builder // of all tests, with their line ends taken out
	unfold := strings.NewReplacer("\n// ", " ", "\n# ", " ")
	err = filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") && !strings.HasSuffix(path, ".txtar") {
			return err
		}
		text, err := os.ReadFile(path)
		comments.WriteString(unfold.Replace(string(text)))
		for _, m := range declared.FindAllSubmatch(text, -1) {
			names[filepath.Base(filepath.Dir(path))+"."+string(m[2])] += " " + string(m[1])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("`(\\w+\\.(?:Test|Fuzz)\\w+)`").FindAllStringSubmatch(string(page), -1) {
		if names[m[1]] == "" {
			t.Errorf("docs/guarantees.md names %s, and there is no such test", m[1])
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^\| (4\.\d #\d+) \|`).FindAllStringSubmatch(string(page), -1) {
		if !regexp.MustCompile(regexp.QuoteMeta(m[1]) + `\b`).MatchString(comments.String()) {
			t.Errorf("docs/guarantees.md lists report %s, and no test names it", m[1])
		}
	}
	for _, row := range regexp.MustCompile(`(?m)^\| ([A-L]\d+) \|(.*)$`).FindAllStringSubmatch(string(page), -1) {
		named := regexp.MustCompile(`\b` + row[1] + `\b`)
		for _, m := range regexp.MustCompile("`(\\w+\\.Test\\w+)`").FindAllStringSubmatch(row[2], -1) {
			if !named.MatchString(names[m[1]]) {
				t.Errorf("docs/guarantees.md: %s is held by %s, which does not name it", row[1], m[1])
			}
		}
		_, after, _ := strings.Cut(row[2], "script")
		for _, m := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(after, -1) {
			text, err := os.ReadFile(filepath.Join("../cmd/sovereign/testdata/script", m[1]+".txtar"))
			if err != nil || !named.Match(text) {
				t.Errorf("docs/guarantees.md: %s is held by script %s, which does not name it: %v", row[1], m[1], err)
			}
		}
	}
	for line := range strings.Lines(string(page)) {
		_, after, ok := strings.Cut(line, "script")
		if !ok || !strings.HasPrefix(line, "|") {
			continue
		}
		for _, m := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(after, -1) {
			if _, err := os.Stat(filepath.Join("../cmd/sovereign/testdata/script", m[1]+".txtar")); err != nil {
				t.Errorf("docs/guarantees.md: %v", err)
			}
		}
	}
}
