package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sovereign-run/sovereign/config"
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

// namedActors refuses an ACTOR that is there and empty: where it may be left out, that would
// be every actor.
func namedActors(cmd *cobra.Command, args []string) error {
	if !slices.Contains(args, "") {
		return nil
	}
	next := "name one"
	if strings.Contains(cmd.Use, "[ACTOR]") {
		next += ", or leave it out for every actor"
	}
	return usage("ACTOR is empty", "it was given, as by a variable that is not set", next)
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

// helpMeant is err; where it says that there is no actor help, it says how to get help with
// cmd, which takes an actor there.
func helpMeant(cmd *cobra.Command, args []string, err error) error {
	if argOr(args, "") != "help" || !refusal.Has(err, refusal.UnknownActor) {
		return err
	}
	r := *refusal.Of(err)
	r.Next = "for help: " + cmd.CommandPath() + " --help"
	return &r
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
		if verb, _, _ := strings.Cut(why, " "); verb == "is" || verb == "has" {
			why = "it " + why
		}
		if number, ok := errors.AsType[*strconv.NumError](err); ok {
			why = "it is no number"
			if wrong.GetFlag().Value.Type() == "bool" {
				why = "it is there or not; write it without a value"
			}
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
	return config.Closest(word, known)
}
