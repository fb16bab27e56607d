package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sovereign-run/sovereign/refusal"
)

// refuseInWords makes each wrong command line below cmd a bad_request that says
// what is wrong and what was probably meant.
func refuseInWords(cmd *cobra.Command) {
	cmd.SuggestionsMinimumDistance = 2
	cmd.SetFlagErrorFunc(wrongFlag)
	if check := cmd.Args; check != nil {
		cmd.Args = func(c *cobra.Command, args []string) error { return wrongArgs(c, check(c, args)) }
	}
	for _, child := range cmd.Commands() {
		refuseInWords(child)
	}
}

func wrongArgs(cmd *cobra.Command, err error) error {
	if err == nil {
		return nil
	}
	if _, said := errors.AsType[*refusal.Error](err); said {
		return err
	}
	return usage("wrong arguments for "+cmd.CommandPath(), err.Error(), "usage: "+cmd.UseLine())
}

// exclude refuses the flags names, of which at most one may be given.
func exclude(cmd *cobra.Command, names ...string) {
	before := cmd.PreRunE
	cmd.PreRunE = func(c *cobra.Command, args []string) error {
		var given []string
		for _, name := range names {
			if c.Flags().Changed(name) {
				given = append(given, "--"+name)
			}
		}
		if len(given) > 1 {
			return usage(strings.Join(given, " and ")+" exclude each other", "they contradict", "see `"+c.CommandPath()+" --help`")
		}
		if before != nil {
			return before(c, args)
		}
		return nil
	}
}

func wrongFlag(cmd *cobra.Command, err error) error {
	next := "see `" + cmd.CommandPath() + " --help`"
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return usage("wrong flags for "+cmd.CommandPath(), err.Error(), next)
	}
	name, why := unknown.GetSpecifiedName(), ""
	if meant := closestFlag(cmd, name); meant != "" {
		why = "did you mean --" + meant + "?"
	}
	dashes := "--"
	if unknown.GetSpecifiedShortnames() != "" {
		dashes = "-"
	}
	return usage(fmt.Sprintf("%s%s is no flag of %s", dashes, cutTo(printable(name), 40), cmd.CommandPath()), why, next)
}

// closestFlag is the flag of cmd that word is most likely a slip of, or "".
func closestFlag(cmd *cobra.Command, word string) string {
	best, bestSlips := "", 3
	look := func(f *pflag.Flag) {
		if n := slips(strings.ToLower(word), f.Name); !f.Hidden && n < bestSlips && n < len(f.Name) {
			best, bestSlips = f.Name, n
		}
	}
	cmd.Flags().VisitAll(look)
	cmd.InheritedFlags().VisitAll(look)
	return best
}

// slips is the number of letters that are too many, missing or different
// between a and b (Levenshtein).
func slips(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			changed := diagonal
			if a[i] != b[j] {
				changed++
			}
			diagonal = row[j+1]
			row[j+1] = min(row[j+1]+1, row[j]+1, changed)
		}
	}
	return row[len(b)]
}
