package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var (
	codeSpan = regexp.MustCompile("`([^`]+)`")
	flagName = regexp.MustCompile(`(^|[^\w-])(--[a-z][a-z-]*|-[a-z])\b`)
)

// An interfaceRow is one line of the table of commands in docs/interface.md: the
// commands that it names, and the flags.
type interfaceRow struct {
	line     string
	commands []*cobra.Command
	flags    []string
}

// has reports whether one of the row's commands has the flag, -f or --flag.
func (r interfaceRow) has(name string) bool {
	return slices.ContainsFunc(r.commands, func(c *cobra.Command) bool {
		if short, ok := strings.CutPrefix(name, "-"); ok && len(short) == 1 {
			return c.Flags().ShorthandLookup(short) != nil
		}
		name := strings.TrimPrefix(name, "--")
		return c.Flags().Lookup(name) != nil || c.InheritedFlags().Lookup(name) != nil
	})
}

// commandsSection is the part of docs/interface.md about the commands.
func commandsSection(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../../docs/interface.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(b), "\n## Commands\n")
	if !found {
		t.Fatal("docs/interface.md has no section Commands")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	return section
}

// interfaceRows reads the table. Its first column names commands with their
// arguments, one of several as a|b, and after the first of a line without what the one
// before it begins with: `sovereign inbox drop ID…` / `purge`.
func interfaceRows(t *testing.T, root *cobra.Command) []interfaceRow {
	t.Helper()
	_, table, _ := strings.Cut(commandsSection(t), "\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var rows []interfaceRow
	for line := range strings.Lines(table) {
		line = strings.TrimSpace(line)
		row := interfaceRow{line: line}
		first, _, _ := strings.Cut(strings.Trim(line, "|"), " | ")
		beside := root // where a command stands that is not one of the program's own
		for _, span := range codeSpan.FindAllStringSubmatch(first, -1) {
			words := strings.Fields(strings.ReplaceAll(strings.TrimPrefix(span[1], "sovereign "), `\|`, "|"))
			under := root
			if resolve(root, words) == nil {
				under = beside
			}
			found := resolve(under, words)
			if len(found) == 0 {
				t.Errorf("there is no command `%s`: %s", span[1], line)
				continue
			}
			row.commands = append(row.commands, found...)
			beside = found[0].Parent()
		}
		for _, span := range codeSpan.FindAllStringSubmatch(line, -1) {
			for _, f := range flagName.FindAllStringSubmatch(span[1], -1) {
				row.flags = append(row.flags, f[2])
			}
		}
		rows = append(rows, row)
	}
	if len(rows) < 20 {
		t.Fatalf("only %d lines found", len(rows))
	}
	return rows
}

// resolve is the commands that words begin with.
func resolve(under *cobra.Command, words []string) []*cobra.Command {
	var out []*cobra.Command
	for name := range strings.SplitSeq(words[0], "|") {
		c := named(under, name)
		switch {
		case c == nil:
			return nil
		case len(words) > 1 && named(c, words[1]) != nil:
			out = append(out, resolve(c, words[1:])...)
		default:
			out = append(out, c)
		}
	}
	return out
}

func named(under *cobra.Command, name string) *cobra.Command {
	for _, c := range under.Commands() {
		if c.Name() == name {
			return c
		}
	}
	return nil
}

// The table of commands in docs/interface.md names every command and flag of the
// program, and none that there is not. Add, rename or remove one on either side and
// this fails.
func TestInterface_NamesTheCommandsAndFlags(t *testing.T) {
	root := newRoot()
	promised := map[*cobra.Command][]string{} // flags, by the commands beside which they stand
	for _, row := range interfaceRows(t, root) {
		for _, f := range row.flags {
			if !row.has(f) {
				t.Errorf("%s is no flag of these: %s", f, row.line)
			}
		}
		for _, c := range row.commands {
			promised[c] = append(append([]string{}, promised[c]...), row.flags...)
		}
	}
	each(root, func(c *cobra.Command) {
		flags, there := promised[c]
		if c == root || !there && slices.ContainsFunc(c.Commands(), func(sub *cobra.Command) bool { return promised[sub] != nil }) {
			return // named with what follows it
		}
		if !there {
			t.Errorf("docs/interface.md does not name `%s`", c.CommandPath())
			return
		}
		c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" && !f.Hidden && !slices.Contains(flags, "--"+f.Name) && !(f.Shorthand != "" && slices.Contains(flags, "-"+f.Shorthand)) {
				t.Errorf("docs/interface.md does not name %s --%s", c.CommandPath(), f.Name)
			}
		})
	})
	section := commandsSection(t)
	root.PersistentFlags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && !strings.Contains(section, "`--"+f.Name) {
			t.Errorf("docs/interface.md does not name --%s", f.Name)
		}
	})
}
