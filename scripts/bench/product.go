package main

import (
	"bufio"
	"bytes"
	"context"
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
	f, err := b.launch(dir, fmt.Sprintf(`  work:
    mode: worker
    replicas: %d
    command: 'echo "$SOVEREIGN_PROCESS $SOVEREIGN_LEASE_TOKEN" >"$UP"; read end <&3'
    inbox: {limit: 10000000}
`, n))
	if err != nil {
		return nil, err
	}
	p := &product{fleet: f, sdk: sdk}
	for range n {
		l, err := f.up(ctx)
		if err != nil {
			_ = f.stop()
			return nil, err
		}
		process, token, _ := strings.Cut(l.text, " ")
		number, err := strconv.ParseUint(token, 10, 64)
		if err != nil {
			_ = f.stop()
			return nil, fmt.Errorf("a child wrote %q: %w", l.text, err)
		}
		p.identities = append(p.identities, protocol.Identity{Process: process, LeaseToken: protocol.Token(number)})
	}
	return p, nil
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
	c := &lineClient{conn: conn, in: bufio.NewReaderSize(conn, 8<<10)}
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
	out      []byte
	identity string
}

func (c *lineClient) close() { _ = c.conn.Close() }

// ask makes one request, whose params begin with the identity.
func (c *lineClient) ask(method string) ([]byte, error) {
	head := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + c.identity
	line := append([]byte(head), c.out...)
	line = append(line, "}}\n"...)
	if _, err := c.conn.Write(line); err != nil {
		return nil, err
	}
	answer, err := c.in.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	if bytes.Contains(answer, []byte(`"error":{`)) {
		return nil, fmt.Errorf("%s: %s", method, answer)
	}
	return answer, nil
}

func (c *lineClient) send(body []byte) error {
	c.out = append(c.out[:0], `"to":"work","body":`...)
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
	c.out = append(c.out[:0], `"id":"`...)
	c.out = append(c.out, j.id...)
	c.out = append(c.out, `","token":`...)
	c.out = strconv.AppendUint(c.out, j.token, 10)
	c.out = append(c.out, more...)
	return c.ask(protocol.MethodComplete)
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
