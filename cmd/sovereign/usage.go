package main

import (
	"errors"
	"fmt"
	"strconv"
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
		cmd.Args = func(c *cobra.Command, args []string) error { return wrongArgs(c, len(args), check(c, args)) }
	}
	for _, child := range cmd.Commands() {
		refuseInWords(child)
	}
}

func wrongArgs(cmd *cobra.Command, given int, err error) error {
	if err == nil {
		return nil
	}
	if _, said := errors.AsType[*refusal.Error](err); said {
		return err
	}
	return usage("wrong arguments for "+cmd.CommandPath(), takes(err)+", and "+many(given)+" given", "usage: "+cmd.UseLine())
}

// takes says how many arguments a command takes, from what cobra says of it.
func takes(err error) string {
	var least, most int
	text := err.Error()
	if n, _ := fmt.Sscanf(text, "accepts between %d and %d", &least, &most); n == 2 {
		return fmt.Sprintf("it takes %d to %d", least, most)
	}
	for form, words := range map[string]string{"accepts %d": "it takes %d", "accepts at most %d": "it takes at most %d", "requires at least %d": "it takes %d or more"} {
		if n, _ := fmt.Sscanf(text, form, &least); n == 1 {
			return fmt.Sprintf(words, least)
		}
	}
	return "it takes none"
}

func many(n int) string {
	switch n {
	case 0:
		return "none was"
	case 1:
		return "1 was"
	}
	return fmt.Sprintf("%d were", n)
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
	if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		why := errors.Unwrap(wrong).Error()
		if number, ok := errors.AsType[*strconv.NumError](err); ok {
			why = "it is no number"
			if errors.Is(number, strconv.ErrRange) {
				why = "the number is too large"
			}
		}
		return usage(fmt.Sprintf("--%s cannot be %q", wrong.GetFlag().Name, cutTo(printable(wrong.GetValue()), 40)), why, next)
	}
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
	var known []string
	look := func(f *pflag.Flag) {
		if !f.Hidden {
			known = append(known, f.Name)
		}
	}
	cmd.Flags().VisitAll(look)
	cmd.InheritedFlags().VisitAll(look)
	return closest(strings.ToLower(word), known)
}

// closest is the first of those known of which word is most likely a slip: with at most
// two slips, and fewer than it has letters. "" if there is none.
func closest(word string, known []string) string {
	best, bestSlips := "", 3
	for _, name := range known {
		if n := slips(word, name); n < bestSlips && n < len(name) {
			best, bestSlips = name, n
		}
	}
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
