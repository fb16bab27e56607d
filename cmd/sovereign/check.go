package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sovereign-run/sovereign/config"
)

type checkOptions struct {
	*shared
	keys bool
}

func newCheck(s *shared) *cobra.Command {
	o := checkOptions{shared: s}
	cmd := &cobra.Command{
		Use:   "check actors.yaml | check --keys",
		Short: "Validate an actors.yaml and show what it comes to",
		Long: `Validate the file, and print what it comes to: every default filled in, every path
absolute, and of environment variables the names. Nothing is started or written.

All problems are listed at once, each as FILE:LINE:COLUMN: what is wrong and what
is allowed; the exit status is then 2.

With --keys it says instead which keys an actors.yaml may have, first those of the file,
then those of an actor: what each means, what may stand there, and what holds where it
is left out.`,
		Example: "  sovereign check actors.yaml\n  sovereign check actors.yaml --json | jq '.actors[].command'\n  sovereign check --keys | less",
		Args: func(cmd *cobra.Command, args []string) error {
			if o.keys {
				return cobra.NoArgs(cmd, args)
			}
			return cobra.ExactArgs(1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.keys {
				return o.tellKeys(streamsOf(cmd))
			}
			return o.run(streamsOf(cmd), args[0])
		},
	}
	cmd.Flags().BoolVar(&o.keys, "keys", false, "say which keys an actors.yaml may have")
	return cmd
}

// tellKeys prints what docs/actors.md holds in a table, for who has the program alone.
func (o checkOptions) tellKeys(io streams) error {
	const indent = "    "
	keys := config.KeyTexts()
	if o.json {
		return writeJSON(io.out, map[string]any{"keys": keys})
	}
	var b strings.Builder
	for _, k := range keys {
		b.WriteString(k.Key + ": " + k.Value)
		if k.Default != "" {
			b.WriteString(", " + k.Default + " unless given")
		}
		if len(k.Modes) > 0 {
			b.WriteString(" (" + strings.Join(k.Modes, ", ") + ")")
		}
		b.WriteByte('\n')
		for _, line := range hung(k.Meaning, terminalWidth(io.out)-len(indent), 0, "") {
			b.WriteString(indent + line + "\n")
		}
	}
	_, err := fmt.Fprint(io.out, b.String())
	return err
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
	if err := printDescription(io.out, described); err != nil {
		return err
	}
	for _, a := range file.Actors {
		if behindShell(a) {
			fmt.Fprintf(io.err, "%s: a shell stands between, and may die of the signal that asks to stop before its program has finished: write command as a list, or with exec in front\n", a.Name)
		}
	}
	return nil
}

// behindShell is true of what lives long and is one program, which a shell starts and waits
// for though it does nothing else.
func behindShell(a config.Actor) bool {
	return a.Mode != config.Task && len(a.Command) == 3 && a.Command[0] == "/bin/sh" && a.Command[1] == "-c" &&
		!strings.HasPrefix(strings.TrimSpace(a.Command[2]), "exec ") && !strings.ContainsAny(a.Command[2], "\n;&|(){}<>`")
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
