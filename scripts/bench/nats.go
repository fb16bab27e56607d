package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
)

// nats keeps the messages in a work-queue stream of JetStream on files, which a durable
// pull consumer hands out. The send and the acknowledgement are synced; who holds a
// message is not, and there is no token. It listens on loopback: it knows no unix sockets.
type nats struct{ *daemon }

// natsConfig begins a server on a port, with its files in a folder, that syncs each
// write, or each so often.
const natsConfig = `host: 127.0.0.1
port: %d
jetstream { store_dir: %q, max_file_store: 20GB, sync_interval: %s }
`

// The stream and its consumer: a message is out for a minute, as ours is, and then comes
// again, at most 5 times.
const (
	natsStream   = `{"name":"Q","subjects":["q"],"retention":"workqueue","storage":"file","discard":"new","num_replicas":1}`
	natsConsumer = `{"stream_name":"Q","config":{"durable_name":"c","ack_policy":"explicit","ack_wait":60000000000,` +
		`"max_deliver":5,"max_ack_pending":10000}}`
)

func (b *bench) nats() (broker, error) {
	dir, err := b.folder()
	if err != nil {
		return nil, err
	}
	return b.startNATS(dir, "always")
}

// startNATS starts a server on the files in dir, which is to sync always or each so often.
func (b *bench) startNATS(dir, sync string) (*nats, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "nats.conf")
	if err := os.WriteFile(config, fmt.Appendf(nil, natsConfig, port, filepath.Join(dir, "js"), sync), 0o600); err != nil {
		return nil, err
	}
	d, err := listening(&daemon{dir: dir, cmd: exec.Command(b.natsServer, "-c", config), network: "tcp",
		address: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))})
	if err != nil {
		return nil, err
	}
	n := &nats{d}
	if err := n.declare(); err != nil {
		return nil, errors.Join(err, n.stop())
	}
	return n, nil
}

// freePort is one of loopback that nobody listens on.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// declare makes the stream and the consumer where they are not yet.
func (n *nats) declare() error {
	c, err := n.open()
	if err != nil {
		return err
	}
	defer c.close()
	if _, err := c.ask("$JS.API.STREAM.CREATE.Q", natsStream); err != nil {
		return err
	}
	_, err = c.ask("$JS.API.CONSUMER.DURABLE.CREATE.Q.c", natsConsumer)
	return err
}

func (n *nats) client(int) (client, error) { return n.open() }

// natsInboxes counts the inboxes, whose names nobody shares.
var natsInboxes atomic.Int64

func (n *nats) open() (*natsClient, error) {
	w, err := n.dial()
	if err != nil {
		return nil, err
	}
	c := &natsClient{wire: w, inbox: "i." + strconv.FormatInt(natsInboxes.Add(1), 10)}
	fmt.Fprintf(c.out, "CONNECT {\"verbose\":false,\"pedantic\":false,\"headers\":true,\"no_responders\":true,\"lang\":\"go\",\"version\":\"1\",\"protocol\":1}\r\nSUB %s 1\r\n", c.inbox)
	return c, nil
}

// natsClient makes one request at a time: whatever comes to its inbox is the answer.
type natsClient struct {
	wire
	inbox string
}

// A natsMessage is what came to an inbox.
type natsMessage struct {
	reply  string // where an acknowledgement goes
	status string // of a message with headers: what the server says instead of an answer
	body   []byte
}

// request publishes to a subject and waits for what comes back.
func (c *natsClient) request(subject string, body []byte) (natsMessage, error) {
	c.out.WriteString("PUB ")
	c.out.WriteString(subject)
	c.out.WriteByte(' ')
	c.out.WriteString(c.inbox)
	c.out.WriteByte(' ')
	c.out.WriteString(strconv.Itoa(len(body)))
	c.out.WriteString("\r\n")
	c.out.Write(body)
	c.out.WriteString("\r\n")
	if err := c.out.Flush(); err != nil {
		return natsMessage{}, err
	}
	return c.receive()
}

// receive reads until a message comes.
func (c *natsClient) receive() (m natsMessage, err error) {
	for {
		head, err := c.in.ReadString('\n')
		if err != nil {
			return m, err
		}
		words := strings.Fields(head)
		switch {
		case len(words) > 0 && words[0] == "INFO":
		case len(words) == 1 && words[0] == "PING":
			c.out.WriteString("PONG\r\n")
			if err := c.out.Flush(); err != nil {
				return m, err
			}
		case len(words) > 3 && words[0] == "MSG":
			return c.message(words, 4, 0)
		case len(words) > 4 && words[0] == "HMSG":
			headers, err := strconv.Atoi(words[len(words)-2])
			if err != nil {
				return m, err
			}
			return c.message(words, 5, headers)
		default:
			return m, fmt.Errorf("NATS answered %q", head)
		}
	}
}

// message reads one whose head is words; one more than least of them if it has a reply.
func (c *natsClient) message(words []string, least, headers int) (m natsMessage, err error) {
	if len(words) > least {
		m.reply = words[3]
	}
	size, err := strconv.Atoi(words[len(words)-1])
	if err != nil {
		return m, err
	}
	b := make([]byte, size+2)
	if _, err := io.ReadFull(c.in, b); err != nil {
		return m, err
	}
	first, _, _ := strings.Cut(string(b[:headers]), "\r\n")
	m.status = strings.TrimSpace(strings.TrimPrefix(first, "NATS/1.0"))
	m.body = b[headers:size]
	return m, nil
}

// ask makes a request that is answered with JSON.
func (c *natsClient) ask(subject, body string) (string, error) {
	m, err := c.request(subject, []byte(body))
	if err != nil {
		return "", err
	}
	if text := string(m.body); m.status == "" && !strings.Contains(text, `"error":`) {
		return text, nil
	}
	return "", fmt.Errorf("NATS answered %s to %s: %s", m.status, subject, m.body)
}

func (c *natsClient) send(body []byte) error {
	m, err := c.request("q", body)
	if err != nil {
		return err
	}
	if m.status != "" || !strings.HasPrefix(string(m.body), `{"stream":"Q"`) {
		return fmt.Errorf("NATS did not store a message: %s %s", m.status, m.body)
	}
	return nil
}

// claim asks for one message and waits for it up to an hour.
func (c *natsClient) claim() (job, error) {
	m, err := c.request("$JS.API.CONSUMER.MSG.NEXT.Q.c", []byte(`{"batch":1,"expires":3600000000000}`))
	if err != nil {
		return job{}, err
	}
	if m.status != "" || m.reply == "" {
		return job{}, fmt.Errorf("NATS gave no message: %s %s", m.status, m.body)
	}
	return job{id: m.reply}, nil
}

// complete waits until the acknowledgement is acknowledged.
func (c *natsClient) complete(j job) error {
	m, err := c.request(j.id, []byte("+ACK"))
	if err == nil && m.status != "" {
		err = fmt.Errorf("NATS did not take the acknowledgement of %s: %s", j.id, m.status)
	}
	return err
}

// next has no form of its own that says that the message is done.
func (c *natsClient) next(j job) (job, bool, error) { return job{}, false, c.complete(j) }
