package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

func newInboxShow(s *shared) *cobra.Command {
	return &cobra.Command{
		Use:   "show ID...",
		Short: "Show messages with their receipts, and why they are not running",
		Long: `Show each message: its body and result, the receipt of each attempt, and, where
it neither runs nor has ended, why not. With --json each is a line.`,
		Example:           "  sovereign inbox show m42\n  sovereign inbox show m42 m43 --json | jq -r .result",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: completeMessage(s),
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.showMessages(cmd.Context(), streamsOf(cmd), args)
		},
	}
}

// showMessages shows each. That one is missing is told in its place, and keeps the others
// from nothing.
func (s *shared) showMessages(ctx context.Context, io streams, ids []string) error {
	conn, err := s.connect(ctx, toRead)
	if err != nil {
		return err
	}
	missing := false
	for i, id := range ids {
		if i > 0 && !s.json {
			fmt.Fprintln(io.out)
		}
		err = s.showMessage(ctx, io, conn, id)
		if len(ids) > 1 && refusal.Has(err, refusal.MessageMissing) {
			report(err, s.json, io.out, io.err)
			missing, err = true, nil
		}
		if err != nil {
			break
		}
	}
	if err = errors.Join(err, conn.Close()); err == nil && missing {
		return statusError{status: exitNothing}
	}
	return err
}

func (s *shared) showMessage(ctx context.Context, io streams, conn *connection, id string) error {
	var m protocol.MessageDetail
	if err := conn.call(ctx, protocol.MethodInboxShow, protocol.InboxShowParams{ID: id}, &m); err != nil {
		return err
	}
	if s.json {
		return writeJSON(io.out, m)
	}
	return printMessage(io.out, m, time.Now(), terminalWidth(io.out))
}

func printMessage(w io.Writer, m protocol.MessageDetail, now time.Time, width int) error {
	err := fields(w,
		"id", m.ID,
		"to", m.To,
		"from", printable(m.From),
		"subject", printable(m.Subject),
		"state", stateOf(m.Message, now),
		"why", printable(whyAlone(m)),
		"poison", printable(m.Poison),
		"sent", clock(m.CreatedAt, now)+", "+age(m.CreatedAt, now)+" ago",
		"due", due(m.Message, now),
		"expires", expires(m.Message, now),
		"ended", ended(m.Message, now),
		"attempts", attempts(m.Message),
		"claim", printable(claimInWords(m.Message)),
		"priority", nonZero(m.Priority),
		"group", printable(m.Group),
		"key", keyOf(m, now),
		"headers", headerList(m.Headers),
		"last failure", lastFailure(m.Message, now),
	)
	if err != nil {
		return err
	}
	if err := printContent(w, fmt.Sprintf("body (%s)", size(int64(m.Size))), m.Body, m.BodyBase64); err != nil {
		return err
	}
	if m.Result != nil || m.ResultBase64 != nil {
		title := "result"
		if m.ResultTruncated {
			title = "result (its beginning)"
		}
		if err := printContent(w, title, m.Result, m.ResultBase64); err != nil {
			return err
		}
	}
	if len(m.Receipts) == 0 && m.LastFailure != nil && inShort(m.LastFailure.Reason) != printable(m.LastFailure.Reason) {
		return printContent(w, "last failure", &m.LastFailure.Reason, nil) // it was imported
	}
	return printReceipts(w, m, now, width)
}

// whyAlone is why m is not running, without that it is poison, which has a line of its own.
func whyAlone(m protocol.MessageDetail) string {
	if m.Poison == "" {
		return m.Why
	}
	return strings.TrimSuffix(m.Why, "; "+m.Poison)
}

// claimInWords is claimOf where there is room for what its numbers are.
func claimInWords(m protocol.Message) string {
	if m.Claim == nil {
		return ""
	}
	text := fmt.Sprintf("%s/%d, token %d, %s left", m.To, m.Claim.Slot, m.Claim.Token, short(time.Duration(m.Claim.RemainingMS)*time.Millisecond))
	if m.Claim.Progress != "" {
		text += ", progress: " + m.Claim.Progress
	}
	return text
}

func due(m protocol.Message, now time.Time) string {
	if m.State != protocol.MessageNew || !m.AvailableAt.After(now) {
		return ""
	}
	return clock(m.AvailableAt, now) + ", in " + short(m.AvailableAt.Sub(now))
}

// keyOf is the key of a message, and for how long it holds it where that is not as long
// as it exists.
func keyOf(m protocol.MessageDetail, now time.Time) string {
	text := printable(m.Key)
	switch {
	case m.KeyFree:
		text += " (no longer held)"
	case !m.KeyExpiresAt.IsZero():
		text += ", held until " + clock(m.KeyExpiresAt, now) + ", " + short(m.KeyExpiresAt.Sub(now)) + " more"
	}
	return text
}

// expires is when a message that is not claimed by then is DEAD.
func expires(m protocol.Message, now time.Time) string {
	switch {
	case m.ExpiresAt.IsZero():
		return ""
	case m.ExpiresAt.After(now):
		return clock(m.ExpiresAt, now) + ", in " + short(m.ExpiresAt.Sub(now))
	}
	return clock(m.ExpiresAt, now) + ", " + age(m.ExpiresAt, now) + " ago"
}

func ended(m protocol.Message, now time.Time) string {
	if m.EndedAt.IsZero() {
		return ""
	}
	return clock(m.EndedAt, now) + ", " + age(m.EndedAt, now) + " ago"
}

func nonZero(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func headerList(h map[string]string) string {
	var pairs []string
	for _, k := range slices.Sorted(maps.Keys(h)) {
		pairs = append(pairs, printable(k+"="+h[k]))
	}
	return strings.Join(pairs, ", ")
}

// lastFailure is in short how the last attempt failed; of several lines the receipts have the
// whole.
func lastFailure(m protocol.Message, now time.Time) string {
	if m.LastFailure == nil {
		return ""
	}
	text := fmt.Sprintf("%s, %s ago", m.LastFailure.Category, age(m.LastFailure.At, now))
	if m.LastFailure.Reason != "" {
		text += ": " + inShort(m.LastFailure.Reason)
	}
	return text
}

// printContent writes a body or result, indented. What is no text is only
// measured, and a terminal gets the beginning: --json has it whole.
func printContent(w io.Writer, title string, text *string, binary []byte) error {
	var err error
	switch {
	case binary != nil:
		_, err = fmt.Fprintf(w, "\n%s:\n  %s that are no text; see --json\n", title, plural(int64(len(binary)), "byte"))
	case text == nil || *text == "":
		return nil
	default:
		whole := printableLines(*text)
		shown := whole
		if isTerminal(w) && len(whole) > maxShown {
			shown = strings.ToValidUTF8(whole[:maxShown], "")
		}
		lines := strings.Split(strings.TrimSuffix(shown, "\n"), "\n")
		_, err = fmt.Fprintf(w, "\n%s:\n  %s\n", title, strings.Join(lines, "\n  "))
		if err == nil && len(shown) < len(whole) {
			_, err = fmt.Fprintf(w, "  … and %s more: see --json\n", size(int64(len(whole)-len(shown))))
		}
	}
	return err
}

// maxShown is how much of a body or result a terminal gets, in bytes.
const maxShown = 4 << 10

func printReceipts(w io.Writer, m protocol.MessageDetail, now time.Time, width int) error {
	if len(m.Receipts) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	if m.Omitted > 0 {
		if _, err := fmt.Fprintf(w, "the receipts of the first %s are not shown\n", plural(int64(m.Omitted), "attempt")); err != nil {
			return err
		}
	}
	t := table{columns: []column{{name: "ATTEMPT", number: true}, {name: "BY", gives: 5, least: 8}, {name: "TOKEN", number: true}, {name: "STARTED"},
		{name: "TOOK", number: true}, {name: "END"}, {name: "COUNTED"}, {name: "REASON", gives: 9, drops: 1}}}
	for _, r := range m.Receipts {
		counted := "no"
		if r.Counted {
			counted = "yes"
		}
		t.add(strconv.Itoa(r.Attempt), fmt.Sprintf("%s/%d", r.Actor, r.Slot), r.Token.String(), clock(r.StartedAt, now),
			short(r.EndedAt.Sub(r.StartedAt)), r.Category, counted, inShort(receiptReason(r)))
	}
	if err := t.write(w, width); err != nil {
		return err
	}
	widths, _ := t.fit(width)
	return printReasons(w, m.Receipts, widths[len(widths)-1])
}

// printReasons writes out the reasons that the table has in short, or has no room for.
// Attempts that followed each other and ended in the same way share one.
func printReasons(w io.Writer, receipts []protocol.Receipt, room int) error {
	for first := 0; first < len(receipts); {
		r := receipts[first]
		reason := receiptReason(r)
		last := first
		for last+1 < len(receipts) && receipts[last+1].Category == r.Category && receiptReason(receipts[last+1]) == reason {
			last++
		}
		if whole := printable(reason); whole != inShort(reason) || cells(whole) > room {
			title := fmt.Sprintf("attempt %d, %s", r.Attempt, r.Category)
			if last > first {
				title = fmt.Sprintf("attempts %d to %d, %s", r.Attempt, receipts[last].Attempt, r.Category)
			}
			if err := printContent(w, title, &reason, nil); err != nil {
				return err
			}
		}
		first = last + 1
	}
	return nil
}

func receiptReason(r protocol.Receipt) string {
	switch {
	case r.Reason != "":
		return r.Reason
	case r.Signal != "":
		return "SIG" + strings.TrimPrefix(r.Signal, "SIG")
	case r.ExitCode != nil && *r.ExitCode > 0:
		return fmt.Sprintf("exit status %d", *r.ExitCode)
	default:
		return ""
	}
}
