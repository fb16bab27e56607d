package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

func newInboxExport(s *shared) *cobra.Command {
	o := inboxOptions{shared: s}
	cmd := &cobra.Command{
		Use:   "export [ACTOR]",
		Short: "Write messages as JSON lines",
		Long: `Write the messages of every actor, or of one, to the standard output, one JSON
object a line, in the order in which they were sent, for inbox import or other
programs. A body or result that is no text is {"base64": "…"}. It holds one page at a
time, however many there are; messages that change meanwhile are written as they are
when their turn comes. Receipts are not written: inbox show has them.`,
		Example: `  sovereign inbox export > inbox.jsonl
  sovereign inbox export resize --state DEAD | jq -r .last_failure.reason`,
		Args:              cobra.MatchAll(cobra.MaximumNArgs(1), namedActors),
		ValidArgsFunction: completeRecipient(s),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.export(cmd.Context(), streamsOf(cmd), argOr(args, ""))
		},
	}
	f := cmd.Flags()
	f.Var((*filled)(&o.state), "state", "only in this `state`: NEW, CLAIMED, DONE, DEAD or PARKED")
	f.Var((*filled)(&o.from), "from", "only from this `sender`")
	f.Var((*filled)(&o.subject), "subject", "only with this `text` in the subject")
	f.Var(&o.older, "older", "only sent at least so long ago")
	f.StringVar(&o.after, "after", "", "go on after this `cursor`, such as the id of the last line that was written")
	_ = cmd.RegisterFlagCompletionFunc("state", completeState)
	return cmd
}

func (o inboxOptions) export(ctx context.Context, streams streams, actor string) error {
	conn, err := o.connect(ctx, toRead)
	if err != nil {
		return err
	}
	defer conn.Close()
	if actor != "" {
		if err := o.known(ctx, conn, actor); err != nil {
			return err
		}
	}
	out := bufio.NewWriterSize(streams.out, 64<<10)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	o.limit = exportPage
	for {
		page, err := o.page(ctx, conn, actor)
		if err != nil {
			return errors.Join(err, out.Flush())
		}
		for _, m := range page.Messages {
			var d protocol.MessageDetail
			err := conn.call(ctx, protocol.MethodInboxShow, protocol.InboxShowParams{ID: m.ID}, &d)
			switch {
			case refusal.Has(err, refusal.MessageMissing):
				continue // removed meanwhile
			case err != nil:
				return errors.Join(err, out.Flush())
			}
			if err := encoder.Encode(exported(d)); err != nil {
				return err
			}
		}
		if page.Next == "" {
			return out.Flush()
		}
		o.after = page.Next
	}
}

// exportPage is how many messages, without their bodies, an export holds at a time.
const exportPage = 200

func exported(d protocol.MessageDetail) protocol.ExportedMessage {
	bytesOf := func(text *string, binary []byte) protocol.Body {
		if text != nil {
			return protocol.Body(*text)
		}
		return binary
	}
	return protocol.ExportedMessage{ID: d.ID, To: d.To, From: d.From, Subject: d.Subject, Headers: d.Headers, State: d.State,
		Body: bytesOf(d.Body, d.BodyBase64), Result: bytesOf(d.Result, d.ResultBase64), Truncated: d.ResultTruncated, Key: d.Key, KeyExpires: d.KeyExpiresAt, KeyFree: d.KeyFree, Priority: d.Priority, Group: d.Group,
		CreatedAt: d.CreatedAt, AvailableAt: d.AvailableAt, ExpiresAt: d.ExpiresAt, TTL: d.TTL, EndedAt: d.EndedAt,
		Attempt: d.Attempt, Attempts: d.Attempts, LastFailure: d.LastFailure}
}

func newInboxImport(s *shared) *cobra.Command {
	return &cobra.Command{
		Use:   "import FILE|-",
		Short: "Take in messages that inbox export wrote",
		Long: `Take in the messages of a file that inbox export wrote, in its order, each in its
state, under a new id; the old one is kept in the header imported-id, if there is room
for it. A message that was CLAIMED comes in as PARKED, since nobody here knows how that
attempt ends. What was due or to expire at a time still is, the hold on a key too
(--key-ttl), and a key whose time is over is not held again; one whose key is held by
the same message is there already, and is not taken in again. Ended messages are kept
from now on; charges and receipts do not come along. The recipients must be declared,
and have room for those that are NEW.

It is durable line by line: at the first that is refused it stops, those before it are
imported, and it says from which line on to go on. A message whose id comes a second
time in the file is refused.`,
		Example: `  sovereign inbox export | sovereign inbox import - --data /srv/other/.sovereign`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.importInbox(cmd.Context(), streamsOf(cmd), args[0])
		},
	}
}

// importRequest bounds the messages of one request of an import.
const importRequest = 500

func (s *shared) importInbox(ctx context.Context, streams streams, name string) (err error) {
	file, err := openLines(streams.in, name)
	if err != nil {
		return err
	}
	defer file.Close()
	conn, err := s.connect(ctx, toWrite)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	in := importing{conn: conn, from: name, data: s.data, shown: newCounter(streams.err, "imported", s.json), seen: idSet{}}
	err = eachLine(file, func(line int, m protocol.ExportedMessage, _ int) error {
		m.Line = line
		if m.State == "" && in.done+len(in.batch) == 0 {
			return refusal.New(refusal.BadRequest, fmt.Sprintf("line %d: state is missing", line),
				"an import takes what inbox export wrote", "for new messages: `sovereign send ACTOR --batch FILE`").Because(lineError(line))
		}
		if m.State == "" {
			return lineRefusal(line, "state is missing", "an import takes what inbox export wrote; for new messages use `sovereign send --batch`")
		}
		if in.seen.again(m.ID) {
			return lineRefusal(line, "the id "+protocol.Cut(m.ID, 40)+" comes a second time",
				"an export holds each message once; what another store exported is imported by itself")
		}
		n, err := encodedSize(line, m)
		if err != nil {
			return err
		}
		if in.size+n > requestRoom || len(in.batch) == importRequest {
			if err := in.send(ctx); err != nil {
				return err
			}
		}
		in.batch, in.size = append(in.batch, m), in.size+n
		return nil
	})
	if err == nil || refusal.Has(err, refusal.BadRequest) && in.refused == nil {
		err = errors.Join(in.send(ctx), err) // what was read before a bad line
	}
	in.shown.end()
	return in.tell(streams.out, s.json, err)
}

// An importing is an import under way.
type importing struct {
	conn    *connection
	from    string // file that is read; - is the standard input
	data    string // folder of the store, as it was given
	shown   *progress
	batch   []protocol.ExportedMessage
	size    int
	done    int
	there   int // of those done: there already, as their keys say
	last    int // line of the last one that is durable
	wrong   int // line of the one that was refused; 0 = it is not known
	refused error
	seen    idSet // of the messages that were read
}

// An idSet is a set of message ids. Those of an export lie close together, so that a
// million of them take some hundred kilobytes.
type idSet map[uint64]uint64

// again adds an id, and reports whether it was there. What is no id is in no set.
func (s idSet) again(text string) bool {
	id, err := mailbox.ParseID(text)
	if err != nil {
		return false
	}
	word, bit := uint64(id)/64, uint64(1)<<(uint64(id)%64)
	was := s[word]&bit != 0
	s[word] |= bit
	return was
}

func (in *importing) send(ctx context.Context) error {
	if len(in.batch) == 0 {
		return nil
	}
	batch := in.batch
	in.batch, in.size = nil, 0
	var got protocol.InboxImported
	if in.refused = in.conn.call(ctx, protocol.MethodInboxImport, protocol.InboxImportParams{Messages: batch}, &got); in.refused != nil {
		return in.refused
	}
	in.done += len(got.Messages)
	for _, m := range got.Messages {
		if m.Duplicate {
			in.there++
		}
	}
	if n := len(got.Messages); n > 0 {
		in.last = batch[n-1].Line
	}
	in.shown.count(int64(in.done))
	if got.Error != nil {
		in.refused, in.wrong = got.Error.Refusal(), got.Line
	}
	return in.refused
}

func (in *importing) tell(w io.Writer, asJSON bool, err error) error {
	if err != nil {
		said := *refusal.Of(err)
		if n, ok := errors.AsType[lineError](err); ok && in.refused == nil {
			in.wrong = int(n)
		}
		imported := "nothing was imported"
		if in.done > 0 {
			imported = fmt.Sprintf("imported: %s, up to line %d", plural(int64(in.done), "message"), in.last)
		}
		said.Why = strings.TrimPrefix(said.Why+"; "+imported, "; ")
		said.Next = in.next(&said)
		return said.Because(err)
	}
	if asJSON {
		out := map[string]int{"imported": in.done - in.there}
		if in.there > 0 {
			out["duplicates"] = in.there
		}
		return writeJSON(w, out)
	}
	there := ""
	if in.there > 0 {
		there = fmt.Sprintf("; %d there already, with the same key", in.there)
	}
	_, err = fmt.Fprintf(w, "%s imported%s\n", plural(int64(in.done-in.there), "message"), there)
	return err
}

// next is what to do after an import that was refused as r says.
func (in *importing) next(r *refusal.Error) string {
	file, from := "FILE", in.last+1
	if in.from != "-" {
		file = shellQuote(in.from)
	}
	if in.wrong > 0 {
		from = in.wrong // what is before it is empty, or imported
	}
	rest := fmt.Sprintf("then `tail -n +%d %s | sovereign inbox import -", from, file)
	if in.data != "" {
		rest += " --data " + shellQuote(in.data)
	}
	rest += "`"
	switch {
	case in.done == 0 && in.refused == nil && r.Next != "": // the file is another one
		return r.Next
	case r.Category == refusal.BadRequest && in.wrong > 0:
		return fmt.Sprintf("correct or delete line %d, %s", in.wrong, rest)
	case r.Next != "":
		return r.Next + "; " + rest
	default:
		return rest
	}
}
