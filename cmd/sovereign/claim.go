package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sovereign-run/sovereign/protocol"
)

type claimVerbOptions struct {
	workerOptions
	wait        span
	max         int
	id, request string
	body        string
	asShell     bool
}

func newClaim(s *shared) *cobra.Command {
	o := claimVerbOptions{workerOptions: workerOptions{shared: s}}
	cmd := &cobra.Command{
		Use:   "claim",
		Short: "Claim messages of this worker's actor",
		Long: `Claim messages that wait for the actor of this process, and print the id and the
claim token of each on a line. Where there is none within --wait the exit status
is 4.

With --shell the claim is printed as assignments for eval, under the names that a
task finds in its environment, so that the other verbs find it there. Have a loop look
at the exit status before eval, as below: eval of nothing succeeds, so that a claim
that was killed, or could not be executed, would repeat the last message for ever.`,
		Example: `  while c=$(sovereign claim --wait 1h --shell --body job) && eval "$c"; do
    ./work < job > result && sovereign complete --file result || sovereign fail
  done`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.Context(), streamsOf(cmd))
		},
	}
	o.addFlags(cmd.Flags())
	f := cmd.Flags()
	f.Var(&o.wait, "wait", "wait at most so long for a message")
	f.IntVar(&o.max, "max", 1, "claim at most `N`")
	f.Var((*filled)(&o.id), "id", "claim this message `ID`")
	f.Var((*filled)(&o.request), "request", "a `name` for this request: repeated by this process, it returns the same claims")
	f.Var((*filled)(&o.body), "body", "write the body to this `file` (one message only)")
	f.BoolVar(&o.asShell, "shell", false, "print assignments for eval (one message only)")
	return cmd
}

func (o *claimVerbOptions) run(ctx context.Context, io streams) error {
	at, err := o.asker()
	if err != nil {
		return err
	}
	if o.max < 1 {
		return usage("--max must be at least 1", "", "")
	}
	if o.asShell && o.json {
		return usage("--shell and --json exclude each other", "they print the same in two forms", "give one of them")
	}
	if o.max > 1 && (o.asShell || o.body != "") {
		return usage("--shell and --body take one message", "--max asks for more", "leave --max out")
	}
	stop := func() {}
	if o.wait > 0 { // what nobody would read is not claimed
		stop = endWithReader(io.out)
	}
	claimed, err := o.claim(ctx, at)
	stop()
	if err == nil {
		err = o.tell(io.out, claimed)
	}
	if err == nil && len(claimed.Messages) == 0 {
		err = statusError{status: exitNothing}
	}
	if o.asShell && err != nil {
		// eval of nothing would succeed, and a loop around it never end.
		fmt.Fprintf(io.out, "(exit %d)\n", statusOf(err))
	}
	return err
}

func (o *claimVerbOptions) claim(ctx context.Context, at place) (claimed protocol.ClaimResult, err error) {
	params := protocol.ClaimParams{Identity: at.inherited, Wait: protocol.Duration(o.wait), Max: o.max, ID: o.id, Request: o.request}
	err = askWorker(ctx, at, protocol.MethodClaim, params, &claimed)
	return claimed, err
}

func (o *claimVerbOptions) tell(w io.Writer, claimed protocol.ClaimResult) error {
	if o.body != "" && len(claimed.Messages) > 0 {
		if err := os.WriteFile(o.body, claimed.Messages[0].Body, 0o600); err != nil {
			return fmt.Errorf("write the body: %w", err)
		}
	}
	if o.json {
		return writeJSON(w, claimed)
	}
	for _, m := range claimed.Messages {
		var err error
		if o.asShell {
			_, err = io.WriteString(w, assignments(m))
		} else {
			_, err = fmt.Fprintf(w, "%s %d\n", m.ID, m.Token)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// assignments are a claim as a shell reads it.
func assignments(m protocol.Delivery) string {
	var b strings.Builder
	for _, pair := range [][2]string{
		{"SOVEREIGN_MESSAGE_ID", m.ID}, {"SOVEREIGN_CLAIM_TOKEN", m.Token.String()},
		{"SOVEREIGN_ATTEMPT", fmt.Sprint(m.Attempt)}, {"SOVEREIGN_FROM", m.From}, {"SOVEREIGN_SUBJECT", m.Subject},
	} {
		fmt.Fprintf(&b, "export %s=%s\n", pair[0], shellQuote(pair[1]))
	}
	return b.String()
}

// shellQuote is s as one word of a POSIX shell, plain where it can be.
func shellQuote(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:=@%+,", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(strings.ReplaceAll(s, "\x00", ""), "'", `'\''`) + "'"
}
