package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sovereign-run/sovereign/config"
)

type checkOptions struct{ *shared }

func newCheck(s *shared) *cobra.Command {
	o := checkOptions{shared: s}
	return &cobra.Command{
		Use:   "check actors.yaml",
		Short: "Validate an actors.yaml and show what it comes to",
		Long: `Validate the file, and print what it comes to: every default filled in, every path
absolute, and of environment variables the names. Nothing is started or written.

All problems are listed at once, each as FILE:LINE:COLUMN: what is wrong and what
is allowed; the exit status is then 2.`,
		Example: "  sovereign check actors.yaml\n  sovereign check actors.yaml --json | jq '.actors[].command'",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(streamsOf(cmd), args[0]) },
	}
}

func (o checkOptions) run(io streams, path string) error {
	file, err := config.Load(path)
	if err != nil {
		return err
	}
	described := config.Describe(file)
	if o.json {
		return writeJSON(io.out, described)
	}
	return printDescription(io.out, described)
}

func printDescription(w io.Writer, d config.Description) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s is valid: %s\n", printable(d.File), plural(int64(len(d.Actors)), "actor"))
	fmt.Fprintf(&b, "data: %s\n", printable(d.Data))
	for _, a := range d.Actors {
		fmt.Fprintf(&b, "\n%s\n", a.Actor)
		for _, s := range a.Settings {
			fmt.Fprintf(&b, "  %s: %s\n", s.Key, settingText(s.Value))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func settingText(v any) string {
	words, isList := v.([]string)
	if !isList {
		return printable(fmt.Sprint(v))
	}
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = shellQuote(printable(word))
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
