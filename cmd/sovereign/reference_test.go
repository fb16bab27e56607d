package main

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sovereign-run/sovereign/refusal"
)

var update = flag.Bool("update", false, "write docs/cli.md")

//go:generate go test -run TestReference -update .

const referencePath = "../../docs/cli.md"

// TestReference_IsCurrent: docs/cli.md says what the commands say. Change a flag's
// text without `go generate ./cmd/sovereign` and this fails.
func TestReference_IsCurrent(t *testing.T) {
	want := reference(t)
	if *update {
		if err := os.WriteFile(referencePath, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(referencePath)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("docs/cli.md is not current: run go generate ./cmd/sovereign")
	}
}

// TestReference_IsComplete reads the page itself: every command with its flags,
// every exit status, every category.
func TestReference_IsComplete(t *testing.T) {
	b, err := os.ReadFile(referencePath)
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	each(newRoot(), func(c *cobra.Command) {
		_, section, found := strings.Cut(page, "\n## `"+c.CommandPath()+"`\n")
		if !found {
			t.Errorf("%s has no section", c.CommandPath())
			return
		}
		section, _, _ = strings.Cut(section, "\n## ")
		c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" && !f.Hidden && !strings.Contains(section, "`--"+f.Name) {
				t.Errorf("%s --%s is not documented", c.CommandPath(), f.Name)
			}
		})
	})
	for _, c := range categories(t) {
		line := fmt.Sprintf("| `%s` | %d |", c, statusOfCategory(c))
		if !strings.Contains(page, line) {
			t.Errorf("the page has no line %s", line)
		}
	}
	for status := exitDone; status <= exitNothing; status++ {
		if !strings.Contains(page, fmt.Sprintf("\n| %d | ", status)) {
			t.Errorf("exit status %d is not documented", status)
		}
	}
}

// TestCommands_HaveHelp: every command says in a line and in a paragraph what it
// does, and shows how.
func TestCommands_HaveHelp(t *testing.T) {
	each(newRoot(), func(c *cobra.Command) {
		path := c.CommandPath()
		if c.Short == "" || strings.HasSuffix(c.Short, ".") || len(c.Short) > 70 {
			t.Errorf("%s: Short is %q", path, c.Short)
		}
		if len(c.Long) < 60 {
			t.Errorf("%s: Long is %q", path, c.Long)
		}
		if !strings.Contains(c.Example, "sovereign ") {
			t.Errorf("%s: Example is %q", path, c.Example)
		}
		if c.RunE == nil || c.Run != nil {
			t.Errorf("%s has no RunE", path)
		}
		for _, line := range strings.Split(c.Long+"\n"+c.Example, "\n") {
			if cells(line) > 88 {
				t.Errorf("%s: a line of its help is too long: %q", path, line)
			}
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("%s --%s has no text", path, f.Name)
			}
		})
	})
}

// each calls fn for every command that a person can see.
func each(c *cobra.Command, fn func(*cobra.Command)) {
	if c.Hidden || c.Name() == "help" {
		return
	}
	fn(c)
	for _, child := range c.Commands() {
		each(child, fn)
	}
}

// categories reads every category from the source of package refusal.
func categories(t *testing.T) []refusal.Category {
	t.Helper()
	file, err := parser.ParseFile(gotoken.NewFileSet(), "../../refusal/refusal.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var out []refusal.Category
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if name, isName := spec.Type.(*ast.Ident); !isName || name.Name != "Category" {
			return true
		}
		text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, refusal.Category(text))
		return true
	})
	if len(out) < 20 {
		t.Fatalf("only %d categories found", len(out))
	}
	return out
}

func reference(t *testing.T) []byte {
	var b bytes.Buffer
	b.WriteString(referenceHead)
	for _, c := range categories(t) {
		fmt.Fprintf(&b, "| `%s` | %d | %s |\n", c, statusOfCategory(c), meanings[c])
		if meanings[c] == "" {
			t.Errorf("category %s has no meaning", c)
		}
	}
	each(newRoot(), func(c *cobra.Command) { section(&b, c) })
	return b.Bytes()
}

func section(b *bytes.Buffer, c *cobra.Command) {
	fmt.Fprintf(b, "\n## `%s`\n\n%s.\n\n```\n%s\n```\n\n%s\n", c.CommandPath(), c.Short, c.UseLine(), c.Long)
	var rows []string
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" || f.Hidden {
			return
		}
		kind, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if kind != "" {
			name += " " + kind
		}
		name = "`" + name + "`"
		if f.Shorthand != "" {
			name += ", `-" + f.Shorthand + "`"
		}
		def := ""
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" {
			def = "`" + f.DefValue + "`"
		}
		rows = append(rows, fmt.Sprintf("| %s | %s | %s |", name, strings.ReplaceAll(usage, "|", `\|`), def))
	})
	if len(rows) > 0 {
		fmt.Fprintf(b, "\n| flag | meaning | default |\n|---|---|---|\n%s\n", strings.Join(rows, "\n"))
	}
	fmt.Fprintf(b, "\n```sh\n%s\n```\n", unindent(c.Example))
}

func unindent(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "  ")
	}
	return strings.Join(lines, "\n")
}

const referenceHead = `# The command line

Made from the commands themselves by ` + "`go generate ./cmd/sovereign`" + `; what they promise stands in
[interface.md](interface.md).

## Which store

` + "`--data DIR`, else `SOVEREIGN_SOCKET` (its store), else `SOVEREIGN_DATA`, else `./.sovereign`" + `. ` + "`run` takes the store from\n`--data`, else from `data:` in actors.yaml" + `. Where a supervisor runs, commands ask it over control.sock; where none
runs they open the store themselves, for a moment, waiting up to 10 seconds for each other.

A process with ` + "`SOVEREIGN_PROCESS`" + ` in its environment asks the running supervisor or nobody (` + "`actor_lease_lost`" + `); an
explicit ` + "`--data`" + ` of another store leaves that identity behind.

## Output

Answers go to stdout, notices and errors to stderr. Tables fit the terminal; off a terminal nothing is cut or coloured.
` + "`NO_COLOR`" + ` is respected. Times are local for people, RFC 3339 in UTC as JSON. With ` + "`--json`" + ` an answer is one line of
JSON on stdout, and so is an error:

` + "```json" + `
{"error": {"category": "unknown_actor", "message": "…", "why": "…", "next": "…", "retryable": false}}
` + "```" + `

A wrong actors.yaml adds ` + "`problems`: `[{path, line, column, message}]`" + `.

## Exit status

| status | meaning |
|---|---|
| 0 | done |
| 1 | failed; also: ` + "`status --check`, `verify`, `send --wait` and `run --drain`" + ` found that not all is well |
| 2 | the command line, the request or actors.yaml is wrong |
| 3 | refused, for the category that is printed |
| 4 | there is none: no message to claim, no such message |

| category | status | what it means |
|---|---|---|
`

// meanings says in a line what each category means to the one refused.
var meanings = map[refusal.Category]string{
	refusal.ActorLeaseHeld:      "a living process holds the lease",
	refusal.ActorLeaseLost:      "this process does not hold its slot's lease: stop",
	refusal.LeaseExpired:        "the lease or the claim has run out: stop",
	refusal.LeaseCorrupt:        "the lease's record is damaged: `sovereign lease reset`",
	refusal.FencingTokenStale:   "the token is not the claim's current one: stop",
	refusal.AlreadySettled:      "the claim has been ended in another way",
	refusal.MessageNotClaimable: "somebody else holds the message, or it has ended",
	refusal.NotAddressee:        "the message is addressed to another actor",
	refusal.MessageMissing:      "there is no such message",
	refusal.WrongState:          "it cannot be done in the present state",
	refusal.UnknownActor:        "there is no such actor, or no store",
	refusal.InboxFull:           "the inbox is at its limit: try later",
	refusal.MessageTooLarge:     "the body, or a line, is too large",
	refusal.DuplicateKey:        "the key was used with other content",
	refusal.DiskFull:            "the disk is full; nothing was stored",
	refusal.StoreLocked:         "another process has the store open",
	refusal.StoreCorrupt:        "the store is damaged",
	refusal.StoreRolledBack:     "the store is older than its mark: `sovereign recover --accept-rollback`",
	refusal.PermissionDenied:    "this user may not",
	refusal.BadRequest:          "the request or the command line is wrong",
	refusal.OutcomeUnknown:      "a write may or may not be stored: the supervisor stops, recovery decides",
	refusal.Unavailable:         "no supervisor runs, or it is starting or stopping",
	refusal.Failed:              "none of the above",
}
