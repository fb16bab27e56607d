package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/server"
	"github.com/sovereign-run/sovereign/worker"
)

// A product is a running supervisor as a broker: senders use control.sock, workers
// worker.sock with the identities of living children.
type product struct {
	*fleet
	to         []string // recipients: a sender takes them in turn
	identities []protocol.Identity
	sdk        bool // clients are those of package worker
}

// product starts a supervisor with n workers, whose children do nothing but lend
// their identities.
func (b *bench) product(ctx context.Context, n int, sdk bool) (broker, error) {
	dir, err := b.folder()
	if err != nil {
		return nil, err
	}
	return b.productIn(ctx, dir, n, sdk)
}

// productIn is product on the store in dir.
func (b *bench) productIn(ctx context.Context, dir string, n int, sdk bool) (*product, error) {
	p, err := b.actorsIn(ctx, dir, n, "", recipient)
	if err != nil {
		return nil, err
	}
	p.sdk = sdk
	return p, nil
}

// actorsIn is productIn for several actors, each with n workers of its own. Their
// identities stand in the order of names; settings are lines of YAML for each.
func (b *bench) actorsIn(ctx context.Context, dir string, n int, settings string, names ...string) (*product, error) {
	var actors strings.Builder
	for _, name := range names {
		fmt.Fprintf(&actors, `  %s:
    mode: worker
    replicas: %d
    command: 'echo "$SOVEREIGN_ACTOR $SOVEREIGN_PROCESS $SOVEREIGN_LEASE_TOKEN" >"$UP"; read end <&3'
    inbox: {limit: 1000000000}
%s`, name, n, settings)
	}
	f, err := b.launch(dir, actors.String())
	if err != nil {
		return nil, err
	}
	p := &product{fleet: f, to: names}
	of := map[string][]protocol.Identity{}
	for range n * len(names) {
		l, err := f.up(ctx)
		if err != nil {
			_ = f.stop()
			return nil, err
		}
		var name string
		var who protocol.Identity
		if _, err := fmt.Sscan(l.text, &name, &who.Process, &who.LeaseToken); err != nil {
			_ = f.stop()
			return nil, fmt.Errorf("a child wrote %q: %w", l.text, err)
		}
		of[name] = append(of[name], who)
	}
	for _, name := range names {
		p.identities = append(p.identities, of[name]...)
	}
	return p, nil
}

// only is the same supervisor with the clients of one of its actors, number i of the
// names that it was started with.
func (p *product) only(i int) *product {
	n := len(p.identities) / len(p.to)
	return &product{fleet: p.fleet, to: p.to[i : i+1], identities: p.identities[i*n : (i+1)*n]}
}

func (p *product) client(i int) (client, error) {
	name, identity := server.ControlSocket, protocol.Identity{}
	if i >= 0 {
		name, identity = server.WorkerSocket, p.identities[i]
	}
	conn, err := net.Dial("unix", p.socket(name))
	if err != nil {
		return nil, err
	}
	if p.sdk {
		return sdkClient{worker.NewClient(conn, identity)}, nil
	}
	c := &lineClient{conn: conn, in: bufio.NewReaderSize(conn, 8<<10), to: p.to, turn: max(0, -1-i)}
	if i >= 0 {
		c.identity = fmt.Sprintf(`"process":%q,"lease_token":%d,`, identity.Process, identity.LeaseToken)
	}
	return c, nil
}

// lineClient writes requests by hand and looks into the answers for what it needs
// only, as the clients of the other brokers do: what is measured is the broker.
type lineClient struct {
	conn     net.Conn
	in       *bufio.Reader
	out      []byte // params of a request
	line     []byte // the request
	long     []byte // an answer that is longer than in
	identity string
	to       []string
	turn     int // counts the sends, for their recipients
}

func (c *lineClient) close() { _ = c.conn.Close() }

// ask makes one request, whose params begin with the identity.
func (c *lineClient) ask(method string) ([]byte, error) {
	c.line = append(c.line[:0], `{"jsonrpc":"2.0","id":1,"method":"`...)
	c.line = append(c.line, method...)
	c.line = append(c.line, `","params":{`...)
	c.line = append(c.line, c.identity...)
	c.line = append(c.line, c.out...)
	c.line = append(c.line, "}}\n"...)
	if _, err := c.conn.Write(c.line); err != nil {
		return nil, err
	}
	answer, err := c.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		c.long = c.long[:0]
		for errors.Is(err, bufio.ErrBufferFull) {
			c.long = append(c.long, answer...)
			answer, err = c.in.ReadSlice('\n')
		}
		c.long = append(c.long, answer...)
		answer = c.long
	}
	if err != nil {
		return nil, err
	}
	if bytes.Contains(answer, []byte(`"error":{`)) {
		return nil, fmt.Errorf("%s: %s", method, answer)
	}
	return answer, nil
}

func (c *lineClient) send(body []byte) error {
	c.out = append(c.out[:0], `"to":"`...)
	c.out = append(c.out, c.to[c.turn%len(c.to)]...)
	c.out = append(c.out, `","body":`...)
	c.turn++
	c.out = protocol.AppendString(c.out, string(body))
	_, err := c.ask(protocol.MethodSend)
	return err
}

func (c *lineClient) claim() (job, error) {
	for {
		c.out = append(c.out[:0], `"wait":"1h"`...)
		answer, err := c.ask(protocol.MethodClaim)
		if err != nil {
			return job{}, err
		}
		if j, ok, err := delivered(answer); ok || err != nil {
			return j, err
		}
	}
}

// delivered finds the one message of an answer.
func delivered(answer []byte) (j job, ok bool, err error) {
	_, rest, ok := bytes.Cut(answer, []byte(`"id":"`))
	if !ok {
		return j, false, nil
	}
	id, rest, _ := bytes.Cut(rest, []byte(`"`))
	_, rest, _ = bytes.Cut(rest, []byte(`"token":`))
	token, _, _ := bytes.Cut(rest, []byte(`,`))
	j.id = string(id)
	j.token, err = strconv.ParseUint(string(token), 10, 64)
	return j, err == nil, err
}

func (c *lineClient) settle(j job, more string) ([]byte, error) {
	return c.about(protocol.MethodComplete, j, more)
}

// about makes a request about a message that the client holds.
func (c *lineClient) about(method string, j job, more string) ([]byte, error) {
	c.out = append(c.out[:0], `"id":"`...)
	c.out = append(c.out, j.id...)
	c.out = append(c.out, `","token":`...)
	c.out = strconv.AppendUint(c.out, j.token, 10)
	c.out = append(c.out, more...)
	return c.ask(method)
}

func (c *lineClient) renew(j job) error {
	_, err := c.about(protocol.MethodRenew, j, "")
	return err
}

func (c *lineClient) complete(j job) error {
	_, err := c.settle(j, "")
	return err
}

func (c *lineClient) next(j job) (job, bool, error) {
	answer, err := c.settle(j, `,"next":{}`)
	if err != nil {
		return job{}, false, err
	}
	return delivered(answer)
}

// sdkClient is a client as a Go worker has it.
type sdkClient struct{ c *worker.Client }

func (s sdkClient) close() { _ = s.c.Close() }

func (s sdkClient) send(body []byte) error {
	_, err := s.c.Send(context.Background(), protocol.SendParams{Outgoing: protocol.Outgoing{To: recipient, Body: body}})
	return err
}

func (s sdkClient) claim() (job, error) {
	for {
		got, _, err := s.c.Claim(context.Background(), protocol.ClaimParams{Wait: protocol.Duration(limit)})
		if err != nil {
			return job{}, err
		}
		if len(got) > 0 {
			return job{got[0].ID, uint64(got[0].Token)}, nil
		}
	}
}

func (s sdkClient) complete(j job) error {
	_, _, err := s.c.Complete(context.Background(), protocol.CompleteParams{ID: j.id, Token: protocol.Token(j.token)})
	return err
}

func (s sdkClient) next(j job) (job, bool, error) {
	out, _, err := s.c.Complete(context.Background(), protocol.CompleteParams{ID: j.id, Token: protocol.Token(j.token), Next: &protocol.Next{}})
	if err != nil || len(out.Messages) == 0 {
		return job{}, false, err
	}
	return job{out.Messages[0].ID, uint64(out.Messages[0].Token)}, true, nil
}
