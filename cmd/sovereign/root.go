package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// run is the whole program: it carries out one command line and returns its
// exit status.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	report(err, wantsJSON(args), stdout, stderr)
	return statusOf(err)
}

// wantsJSON looks for --json before flags are parsed, so that a command line
// which cannot be parsed is refused in the form that was asked for.
func wantsJSON(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.Contains(args, "--json") || slices.Contains(args, "--json=true")
}

// shared are the flags that every command has.
type shared struct {
	data    string
	json    bool
	notices io.Writer // what a person is told meanwhile
}

// The groups of `sovereign --help`, in its order.
const (
	groupRun      = "run"
	groupMessages = "messages"
	groupActors   = "actors"
	groupWorker   = "worker"
	groupStore    = "store"
)

func newRoot() *cobra.Command {
	var s shared
	root := &cobra.Command{
		Use:   "sovereign",
		Short: "Supervise local processes that work on durable messages",
		Long: `Sovereign runs the processes of one actors.yaml, hands them messages from
durable inboxes, and lets only the current holder of a message settle it.

Which store a command means: --data, else SOVEREIGN_SOCKET, else SOVEREIGN_DATA,
else ./.sovereign.

Exit status: 0 done; 1 failed; 2 usage or configuration; 3 refused, with the
category on stderr; 4 there is none (no message to claim, unknown id).`,
		Example: `  sovereign init && sovereign run actors.yaml
  sovereign send hello world --wait
  sovereign status`,
		PersistentPreRun:  func(cmd *cobra.Command, _ []string) { s.notices = cmd.ErrOrStderr() },
		SilenceErrors:     true,
		SilenceUsage:      true,
		Args:              cobra.ArbitraryArgs,
		RunE:              func(cmd *cobra.Command, args []string) error { return runRoot(cmd, args) },
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.PersistentFlags().Var((*filled)(&s.data), "data", "folder of the `store` (default: SOVEREIGN_SOCKET's, SOVEREIGN_DATA, ./.sovereign)")
	root.PersistentFlags().BoolVar(&s.json, "json", false, "print JSON, errors too")
	root.Version = thisBuild().Version
	root.SetVersionTemplate(thisBuild().String() + "\n")
	root.AddGroup(
		&cobra.Group{ID: groupRun, Title: "Run:"},
		&cobra.Group{ID: groupMessages, Title: "Messages:"},
		&cobra.Group{ID: groupActors, Title: "Actors:"},
		&cobra.Group{ID: groupWorker, Title: "For workers written in shell:"},
		&cobra.Group{ID: groupStore, Title: "The store:"},
	)
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add(groupRun, newInit(), newDemo(&s), newCheck(&s), newRun(&s), newSystemd(&s), newConformance(&s))
	add(groupMessages, newSend(&s), newInbox(&s))
	add(groupActors, newStatus(&s), newStart(&s), newStop(&s), newRestart(&s), newSignal(&s),
		newPause(&s), newResume(&s), newReload(&s), newUpgrade(&s), newLogs(&s), newEvents(&s), newMetrics(&s), newShutdown(&s))
	add(groupWorker, newClaim(&s), newRenew(&s), newComplete(&s), newFail(&s), newRelease(&s), newFence(&s))
	add(groupStore, newRecover(&s), newLease(&s), newVerify(&s), newBackup(&s), newRestore(&s), newCompact(&s))
	root.AddCommand(newCompletion(), newVersion(&s), newTakeoverCheck())
	for _, c := range root.Commands() {
		c.SuggestFor = otherNames[c.Name()]
	}
	root.InitDefaultHelpCmd()
	for _, c := range root.Commands() {
		if c.Name() == "help" {
			c.Args = knownTopic
		}
	}
	fitHelp(root)
	refuseInWords(root)
	return root
}

// knownTopic refuses `help` of a word that is no command.
func knownTopic(help *cobra.Command, args []string) error {
	parent, rest, err := help.Root().Find(args)
	if err == nil && len(rest) > 0 && parent.HasAvailableSubCommands() {
		return unknownCommand(parent, rest[0])
	}
	return err
}

// runRoot answers a command line without a command that is known.
func runRoot(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	return unknownCommand(cmd, args[0])
}

// otherNames are what other programs of this kind call a command.
var otherNames = map[string][]string{
	"status": {"ps", "ls", "list", "top"},
	"logs":   {"tail", "log"},
	"reload": {"reread", "update"},
	"signal": {"kill"},
	"send":   {"push", "put", "enqueue", "publish"},
	"events": {"journal", "monitor"},
}

// closest are the commands below cmd that word may mean: the one that others call so, or
// those that it is a slip of.
func closest(cmd *cobra.Command, word string) []string {
	for _, c := range cmd.Commands() {
		if slices.Contains(c.SuggestFor, word) {
			return []string{c.Name()}
		}
	}
	return cmd.SuggestionsFor(word)
}

func unknownCommand(cmd *cobra.Command, word string) error {
	why := ""
	if close := closest(cmd, word); len(close) > 0 {
		why = "did you mean " + strings.Join(close, " or ") + "?"
	}
	return usage(fmt.Sprintf("%q is no command of %s", cutTo(printable(word), 40), cmd.CommandPath()), why,
		"see `"+cmd.CommandPath()+" --help`")
}
