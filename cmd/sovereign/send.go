package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

type sendOptions struct {
	*shared
	file, subject, from, key, group, id string
	headers                             headers
	keyTTL, delay, ttl, timeout         span
	at                                  instant
	priority                            int
	token                               token
	wait, now                           bool
	batch                               string
}

func newSend(s *shared) *cobra.Command {
	o := sendOptions{shared: s, headers: headers{}}
	cmd := &cobra.Command{
		Use:   "send ACTOR [BODY|-] | send [ACTOR] --batch FILE|-",
		Short: "Send a message; it is durable once the command returns",
		Long: `Send a message to an actor and print its id. It is durable once the command
returns, whether or not a supervisor runs. The body is BODY, with - the standard
input, with --file a file, else empty; what is piped in without - is refused.

A key makes a send repeatable: the same content again returns the first id, other
content is refused (duplicate_key).

Within a task every send is staged: it becomes visible when the task's message is
completed, and not at all if that fails; --now sends at once. What a task prints is its
result, the id too: write > /dev/null behind the send where it is not to be. A
long-lived worker stages with --id and --token of its claim.

With --batch the messages are the lines of FILE, each a JSON object with the names of
the flags: {"to": "resize", "body": "a.png", "subject": …, "from", "headers", "key",
"key_ttl", "delay", "at", "priority", "group", "ttl"}; a body that is no text is
{"base64": "…"}, and "to" is ACTOR unless given. All are sent at one moment or, where
one is refused, none; at most 10,000 messages, which together make 8 MiB of lines. A
FILE without a line sends nothing, which is no error.

With --wait the result is printed once the message has ended; the exit status is 0
for DONE, 1 for DEAD, PARKED, a message that is gone, or a timeout. With --batch --wait
a line is printed for each message as it ends: its line in FILE, its id, its state, and
the beginning of its result or why there is none, with tabs between them; with --json
all of it. 0 says that all are DONE.`,
		Example: `  sovereign send resize picture.png
  sovereign send resize --file job.json --subject nightly --key job-17
  tar c src | sovereign send build - --delay 10m --header kind=tar
  sovereign send hello world --wait --timeout 30s
  jq -c '{body: .url, key: "\(.id)"}' list.json | sovereign send fetch --batch -
  split -l 10000 --filter='sovereign send fetch --batch -' many-urls.jsonl
  sovereign send fetch --batch urls.jsonl --wait --timeout 1h --json > ends.jsonl`,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.batch != "" {
				return cobra.MaximumNArgs(1)(cmd, args)
			}
			return cobra.RangeArgs(1, 2)(cmd, args)
		},
		ValidArgsFunction: completeRecipient(s),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.batch != "" {
				return o.runBatch(cmd.Context(), streamsOf(cmd), argOr(args, ""))
			}
			return o.run(cmd.Context(), streamsOf(cmd), args)
		},
	}
	f := cmd.Flags()
	f.VarP((*filled)(&o.file), "file", "f", "read the body from this `file`")
	f.StringVarP(&o.subject, "subject", "s", "", "what it is about, for people")
	f.StringVar(&o.from, "from", "", "the `sender` (a worker sends as its actor)")
	f.Var(o.headers, "header", "a header, `key=value`; may be repeated")
	f.Var((*filled)(&o.key), "key", "idempotency `key`, per recipient")
	f.Var(&o.keyTTL, "key-ttl", "hold the key for so long (default: while the message exists)")
	f.Var(&o.delay, "delay", "deliver it only after so long")
	f.Var(&o.at, "at", "deliver it only at this time (RFC 3339, local without a zone, or 18:00: the next such time)")
	f.IntVar(&o.priority, "priority", 0, "from -100 to 100, higher first; the oldest goes once 64 went before it")
	f.Var((*filled)(&o.group), "group", "its `group`: one message of a group is worked on at a time, in send order")
	f.Var(&o.ttl, "ttl", "not claimed for so long it is given up (DEAD, expired)")
	f.BoolVarP(&o.wait, "wait", "w", false, "wait for its end and print the result")
	f.Var(&o.timeout, "timeout", "with --wait: at most so long (default: for ever)")
	f.BoolVar(&o.now, "now", false, "within a task: send at once instead of with the completion")
	f.Var((*filled)(&o.id), "id", "stage it with the claim of this message `ID`")
	f.Var(&o.token, "token", "the claim's token, with --id")
	f.Var((*filled)(&o.batch), "batch", "send the messages of this `file` of JSON lines (- is the standard input), all or none")
	for _, other := range []string{"file", "subject", "from", "header", "key", "key-ttl", "delay", "at", "priority", "group", "ttl", "now", "id", "token"} {
		exclude(cmd, "batch", other)
	}
	exclude(cmd, "delay", "at")
	exclude(cmd, "now", "id")
	exclude(cmd, "now", "token")
	return cmd
}

func (o sendOptions) run(ctx context.Context, io streams, args []string) error {
	at := locate(o.data, os.Getenv)
	claim, err := o.claim(at, os.Getenv)
	if err != nil {
		return err
	}
	if err := o.possible(at, claim, args); err != nil {
		return err
	}
	if len(args) == 1 && o.file == "" && at.inherited.Process == "" && holdsContent(io.in) {
		return usage("no body was given", "the standard input is a pipe or a file, and is read only for -",
			"sovereign send "+args[0]+" - to send what it holds; with \"\" for -, or with < /dev/null, an empty message")
	}
	body, err := content(io.in, args[1:], o.file)
	if err != nil {
		return err
	}
	params := protocol.SendParams{Outgoing: o.outgoing(args[0], body), From: o.from, Claim: claim}
	sent, running, err := o.send(ctx, at, params)
	if at.inherited.Process == "" {
		err = o.didYouMean(ctx, err, args[0])
	}
	if err != nil {
		return err
	}
	idle := func() {}
	if !o.json && at.inherited.Process == "" {
		idle = sync.OnceFunc(func() { fmt.Fprintln(io.err, noSupervisor) })
	}
	if o.at.next && !o.json {
		fmt.Fprintf(io.err, "due %s, in %s\n", o.at.Format("Mon 2006-01-02 15:04:05 MST"), short(time.Until(o.at.Time)))
	}
	if o.wait {
		defer onInterrupt(io.err, func() string {
			return fmt.Sprintf("%s goes on: see `sovereign inbox show %s`, or `sovereign inbox cancel %s`", sent.ID, sent.ID, sent.ID)
		})()
		if sent.Recipient != "" && !o.json {
			fmt.Fprintf(io.err, "%s waits: %s is %s\n", sent.ID, args[0], printable(sent.Recipient))
		}
		return o.await(ctx, io, at, sent.ID, idle)
	}
	if err := o.tell(io, args[0], sent, claim); err != nil {
		return err
	}
	if !running {
		idle()
	}
	return nil
}

func (o sendOptions) send(ctx context.Context, at place, params protocol.SendParams) (sent protocol.SendResult, running bool, err error) {
	if at.inherited.Process != "" {
		params.Identity = at.inherited
		return sent, true, askWorker(ctx, at, protocol.MethodSend, params, &sent)
	}
	conn, err := o.connect(ctx, toWrite)
	if err != nil {
		return sent, false, err
	}
	err = conn.call(ctx, protocol.MethodSend, params, &sent)
	return sent, conn.client != nil, errors.Join(err, conn.Close())
}

// claim is the claim with which the message is staged: the one of the flags, in
// a task the task's own, else nil.
func (o sendOptions) claim(at place, getenv func(string) string) (*protocol.ClaimRef, error) {
	switch {
	case (o.id == "") != (o.token == 0):
		return nil, usage("--id and --token go together", "a claim is named by both", "give both, or neither")
	case at.inherited.Process == "" && o.id != "":
		return nil, usage("only a worker can stage a message", "--id and --token name a claim, and this is no worker's process",
			"leave them out, or run the command within a worker")
	case at.inherited.Process == "" || o.now:
		return nil, nil
	case o.id != "":
		return &protocol.ClaimRef{ID: o.id, Token: protocol.Token(o.token)}, nil
	case getenv("SOVEREIGN_MESSAGE_ID") == "":
		return nil, nil
	}
	own, err := parseToken("SOVEREIGN_CLAIM_TOKEN", getenv("SOVEREIGN_CLAIM_TOKEN"))
	if err != nil {
		return nil, err
	}
	return &protocol.ClaimRef{ID: getenv("SOVEREIGN_MESSAGE_ID"), Token: own}, nil
}

var errTimeoutAlone = usage("--timeout needs --wait", "only waiting takes time", "add --wait, or leave --timeout out")

// possible refuses at once what cannot work whatever the store says.
func (o sendOptions) possible(at place, claim *protocol.ClaimRef, args []string) error {
	switch {
	case o.wait && claim != nil:
		return usage("cannot wait for a staged message", "it is sent only when this process completes its own message",
			"send it with --now, or leave --wait out")
	case o.timeout != 0 && !o.wait:
		return errTimeoutAlone
	case o.from != "" && at.inherited.Process != "":
		return usage("a worker sends as its actor", "--from was given within a worker's process", "leave --from out")
	case len(args) == 2 && o.file != "":
		return usage("two bodies were given", "BODY and --file exclude each other", "give one of them")
	}
	return o.isText(args[0])
}

// isText refuses what is not UTF-8 and goes over the wire as a string: written as JSON
// two keys that differ could become one, and the second message be lost.
func (o sendOptions) isText(to string) error {
	for _, given := range []struct{ what, text string }{
		{"ACTOR", to}, {"--key", o.key}, {"--group", o.group}, {"--subject", o.subject}, {"--from", o.from},
	} {
		if !utf8.ValidString(given.text) {
			return usage(given.what+" is not UTF-8", "it was given as "+strconv.QuoteToASCII(given.text), "give it as text, or encode it, say with base64")
		}
	}
	for name, value := range o.headers {
		if !utf8.ValidString(name) || !utf8.ValidString(value) {
			return usage("--header is not UTF-8", "it was given as "+strconv.QuoteToASCII(name+"="+value), "give it as text, or encode it, say with base64")
		}
	}
	return nil
}

func (o sendOptions) outgoing(to string, body []byte) protocol.Outgoing {
	return protocol.Outgoing{To: to, Body: body, Subject: o.subject, Headers: o.headers, Key: o.key,
		KeyTTL: protocol.Duration(o.keyTTL), Delay: protocol.Duration(o.delay), At: o.at.Time,
		Priority: o.priority, Group: o.group, TTL: protocol.Duration(o.ttl)}
}

// tell prints the id, alone, and what a person may want to know beside it.
func (o sendOptions) tell(io streams, to string, sent protocol.SendResult, claim *protocol.ClaimRef) error {
	if o.json {
		return writeJSON(io.out, sent)
	}
	if _, err := fmt.Fprintln(io.out, sent.ID); err != nil {
		return err
	}
	switch {
	case sent.Duplicate:
		fmt.Fprintln(io.err, "the same message was sent before; nothing new was sent")
	case claim != nil && isTerminal(io.err): // in a task, stderr is its log
		fmt.Fprintf(io.err, "staged until %s completes\n", claim.ID)
	case sent.Recipient != "":
		fmt.Fprintf(io.err, "it waits: %s is %s\n", to, printable(sent.Recipient))
	case !o.at.IsZero() && o.at.Before(time.Now()):
		fmt.Fprintln(io.err, "the time of --at is over: it is delivered at once")
	}
	return nil
}

// content is a body or result: the argument, with - the standard input, with a
// file name that file, else nothing.
func content(stdin io.Reader, args []string, file string) ([]byte, error) {
	switch {
	case file == "-" || len(args) > 0 && args[0] == "-":
		return readContent(stdin, "the standard input")
	case file != "":
		f, err := os.Open(file)
		if err != nil {
			return nil, cannotRead("read the body from "+file, err)
		}
		defer f.Close()
		return readContent(f, file)
	case len(args) > 0:
		return []byte(args[0]), nil
	}
	return nil, nil
}

// holdsContent says whether r is a file that is not empty, or a pipe that is not at
// its end, as cron's is: most likely somebody meant it to be read.
func holdsContent(r io.Reader) bool {
	f, ok := r.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		return false
	case info.Mode().IsRegular():
		return info.Size() > 0
	}
	return info.Mode()&os.ModeNamedPipe != 0 && !atEnd(f)
}

// atEnd says whether a pipe's writers have left without a word. One that is silent is
// given a second.
func atEnd(pipe *os.File) bool {
	fds := []unix.PollFd{{Fd: int32(pipe.Fd()), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds, 1000)
		if err != unix.EINTR {
			return err == nil && n > 0 && fds[0].Revents&unix.POLLIN == 0
		}
	}
}

// maxContent is more than any store takes; it bounds what is read into memory.
const maxContent = 6 << 20

func readContent(r io.Reader, name string) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxContent+1))
	switch {
	case err != nil:
		return nil, cannotRead("read the body from "+name, err)
	case len(b) > maxContent:
		return nil, refusal.New(refusal.MessageTooLarge, "the body is too large", "it is larger than "+size(maxContent),
			"keep the data in a file and send its path")
	}
	return b, nil
}

// reason is the last part of a system's error: without the call and path.
func reason(err error) string {
	text := err.Error()
	return text[strings.LastIndex(text, ": ")+len(": "):]
}

// await waits for the end of a message over however many supervisors.
func (o sendOptions) await(ctx context.Context, io streams, at place, id string, idle func()) error {
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(o.timeout))
		defer cancel()
	}
	defer endWithReader(io.out)()
	detail, err := awaitEnd(ctx, at, id, io.err, idle)
	switch {
	case refusal.Has(err, refusal.MessageMissing):
		return statusError{exitFailed, err}
	case err != nil && ctx.Err() == context.DeadlineExceeded:
		return refusal.New(refusal.Failed, id+" has not ended within "+o.timeout.String(), "",
			"see `sovereign inbox show "+id+"`").Later()
	case err != nil:
		return err
	}
	if err := o.printResult(io, detail); err != nil {
		return err
	}
	if detail.State != protocol.MessageDone {
		return statusError{status: exitFailed}
	}
	return nil
}

// onInterrupt tells, where Ctrl-C ends a wait, what goes on all the same. The signal then
// ends this process, as it would have.
func onInterrupt(w io.Writer, goesOn func() string) (stop func()) {
	if signal.Ignored(os.Interrupt) {
		return func() {}
	}
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, os.Interrupt)
	go func() {
		if _, ok := <-caught; !ok {
			return
		}
		fmt.Fprintf(w, "\n%s\n", goesOn())
		signal.Reset(os.Interrupt)
		_ = unix.Kill(os.Getpid(), unix.SIGINT)
	}()
	return func() {
		signal.Stop(caught)
		close(caught)
	}
}

func (o sendOptions) printResult(io streams, m protocol.MessageDetail) error {
	if o.json {
		return writeJSON(io.out, m)
	}
	if m.State != protocol.MessageDone {
		why := lastFailure(m.Message, time.Now())
		if why == "" {
			why = m.Why
		}
		fmt.Fprint(io.err, explain(refusal.New(refusal.Failed, m.ID+" is "+string(m.State), why, "see `sovereign inbox show "+m.ID+"`")))
		return nil
	}
	result := m.ResultBase64
	if m.Result != nil {
		result = []byte(*m.Result)
	}
	if isTerminal(io.out) {
		result = forTerminal(result)
	}
	_, err := io.out.Write(result)
	if err == nil && m.ResultTruncated {
		fmt.Fprintf(io.err, "this is only the beginning of the result; see `sovereign inbox show %s`\n", m.ID)
	}
	return err
}
