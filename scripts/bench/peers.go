package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A daemon is another broker's process.
type daemon struct {
	dir              string // its folder
	cmd              *exec.Cmd
	network, address string // where it listens
	ended            chan struct{}
}

// startDaemon starts a program that listens on the unix socket of that name in dir, and
// waits until it does.
func startDaemon(dir, socket, name string, args ...string) (*daemon, error) {
	return listening(&daemon{dir: dir, cmd: exec.Command(name, args...), network: "unix", address: filepath.Join(dir, socket)})
}

// listening starts d and waits until it listens.
func listening(d *daemon) (*daemon, error) {
	log, err := os.Create(filepath.Join(d.dir, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	d.cmd.Dir, d.cmd.Stdout, d.cmd.Stderr, d.ended = d.dir, log, log, make(chan struct{})
	if err := d.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(d.ended)
		_ = d.cmd.Wait() // how it ended, its log says
	}()
	for give := time.After(limit); ; {
		conn, err := net.Dial(d.network, d.address)
		if err == nil {
			return d, conn.Close()
		}
		select {
		case <-time.After(2 * time.Millisecond):
			continue
		case <-d.ended:
		case <-give:
			d.end(syscall.SIGTERM)
		}
		said, _ := os.ReadFile(log.Name())
		return nil, fmt.Errorf("%s does not listen: %w: %s", d.cmd.Path, err, said)
	}
}

func (d *daemon) pids() []int { return []int{d.cmd.Process.Pid} }

func (d *daemon) stop() error {
	d.end(syscall.SIGTERM)
	return nil
}

func (d *daemon) size() (float64, error) { return float64(filesIn(d.dir)), nil }

// end asks for its end by a signal, and waits for it.
func (d *daemon) end(signal syscall.Signal) {
	_ = d.cmd.Process.Signal(signal)
	select {
	case <-d.ended:
	case <-time.After(30 * time.Second):
		_ = d.cmd.Process.Kill()
		<-d.ended
	}
}

// kill ends it as nobody should.
func (d *daemon) kill() {
	_ = d.cmd.Process.Kill()
	<-d.ended
	if d.network == "unix" {
		_ = os.Remove(d.address)
	}
}

// dial opens a connection with buffers on both ways.
func (d *daemon) dial() (wire, error) {
	conn, err := net.Dial(d.network, d.address)
	return wire{conn: conn, in: bufio.NewReaderSize(conn, 8<<10), out: bufio.NewWriterSize(conn, 8<<10)}, err
}

type wire struct {
	conn net.Conn
	in   *bufio.Reader
	out  *bufio.Writer
}

func (w wire) close() { _ = w.conn.Close() }

// redis keeps the messages in a stream: a claim is a pending entry of a group.
type redis struct{ *daemon }

func (b *bench) redis() (broker, error) {
	dir, err := b.folder()
	if err != nil {
		return nil, err
	}
	r, err := startRedis(dir)
	if err != nil {
		return nil, err
	}
	c, err := r.open(0)
	if err == nil {
		defer c.close()
		_, err = c.do("XGROUP", "CREATE", "q", "g", "0", "MKSTREAM")
	}
	if err != nil {
		return nil, errors.Join(err, r.stop())
	}
	return r, nil
}

func startRedis(dir string) (*redis, error) {
	d, err := startDaemon(dir, "redis.sock", "redis-server", "--port", "0", "--unixsocket", filepath.Join(dir, "redis.sock"), "--dir", dir,
		"--appendonly", "yes", "--appendfsync", "always", "--save", "", "--daemonize", "no")
	if err != nil {
		return nil, err
	}
	return &redis{d}, nil
}

func (r *redis) client(i int) (client, error) { return r.open(i) }

func (r *redis) open(i int) (*redisClient, error) {
	w, err := r.dial()
	return &redisClient{wire: w, name: "c" + strconv.Itoa(i)}, err
}

type redisClient struct {
	wire
	name string
}

// say queues one command.
func (c *redisClient) say(words ...string) {
	fmt.Fprintf(c.out, "*%d\r\n", len(words))
	for _, w := range words {
		c.out.WriteString("$" + strconv.Itoa(len(w)) + "\r\n")
		c.out.WriteString(w)
		c.out.WriteString("\r\n")
	}
}

func (c *redisClient) do(words ...string) (any, error) {
	c.say(words...)
	if err := c.out.Flush(); err != nil {
		return nil, err
	}
	return c.reply()
}

// reply reads one answer: a string, a number, nil or a list.
func (c *redisClient) reply() (any, error) {
	head, err := c.in.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	kind, text := head[0], strings.TrimSpace(string(head[1:]))
	if kind == '+' {
		return text, nil
	}
	if kind == '-' {
		return nil, errors.New("redis: " + text)
	}
	n, err := strconv.Atoi(text)
	switch {
	case err != nil:
		return nil, err
	case kind == ':':
		return n, nil
	case n < 0:
		return nil, nil
	case kind == '$':
		b := make([]byte, n+2)
		_, err := io.ReadFull(c.in, b)
		return string(b[:n]), err
	}
	list := make([]any, n)
	for i := range list {
		if list[i], err = c.reply(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (c *redisClient) send(body []byte) error {
	_, err := c.do("XADD", "q", "*", "b", string(body))
	return err
}

func (c *redisClient) claim() (job, error) {
	answer, err := c.do("XREADGROUP", "GROUP", "g", c.name, "COUNT", "1", "BLOCK", "0", "STREAMS", "q", ">")
	if err != nil {
		return job{}, err
	}
	j, _, err := entry(answer)
	return j, err
}

// entry finds the one message of an answer to XREADGROUP.
func entry(answer any) (j job, ok bool, err error) {
	if answer == nil {
		return j, false, nil
	}
	for range 4 { // streams, the stream, its entries, the entry
		list, is := answer.([]any)
		if !is || len(list) == 0 {
			return j, false, fmt.Errorf("redis: an answer of an unexpected form: %v", answer)
		}
		if answer = list[len(list)-1]; len(list) == 2 {
			if id, is := list[0].(string); is && strings.Contains(id, "-") {
				return job{id: id}, true, nil
			}
		}
	}
	return j, false, fmt.Errorf("redis: an answer of an unexpected form: %v", answer)
}

func (c *redisClient) settle(j job) {
	c.say("MULTI")
	c.say("XACK", "q", "g", j.id)
	c.say("XDEL", "q", j.id)
	c.say("EXEC")
}

// settled reads the answers to settle.
func (c *redisClient) settled(j job) error {
	for range 3 { // OK, QUEUED, QUEUED
		if _, err := c.reply(); err != nil {
			return err
		}
	}
	answer, err := c.reply()
	if err != nil {
		return err
	}
	if list, is := answer.([]any); !is || len(list) != 2 || list[0] != 1 {
		return fmt.Errorf("redis: %s was not acknowledged: %v", j.id, answer)
	}
	return nil
}

func (c *redisClient) complete(j job) error {
	c.settle(j)
	if err := c.out.Flush(); err != nil {
		return err
	}
	return c.settled(j)
}

func (c *redisClient) next(j job) (job, bool, error) {
	c.settle(j)
	answer, err := func() (any, error) {
		c.say("XREADGROUP", "GROUP", "g", c.name, "COUNT", "1", "STREAMS", "q", ">")
		if err := c.out.Flush(); err != nil {
			return nil, err
		}
		if err := c.settled(j); err != nil {
			return nil, err
		}
		return c.reply()
	}()
	if err != nil {
		return job{}, false, err
	}
	return entry(answer)
}

// beanstalkd keeps its claims in memory: a crash gives every message out again.
type beanstalkd struct{ *daemon }

func (b *bench) beanstalkd() (broker, error) {
	dir, err := b.folder()
	if err != nil {
		return nil, err
	}
	return startBeanstalkd(dir, "-f0")
}

func startBeanstalkd(dir, sync string) (*beanstalkd, error) {
	d, err := startDaemon(dir, "bs.sock", "beanstalkd", "-l", "unix:"+filepath.Join(dir, "bs.sock"), "-b", dir, sync)
	if err != nil {
		return nil, err
	}
	return &beanstalkd{d}, nil
}

func (b *beanstalkd) client(int) (client, error) {
	w, err := b.dial()
	return &beanstalkClient{w}, err
}

type beanstalkClient struct{ wire }

// ask sends what is queued and reads one line that must begin with want.
func (c *beanstalkClient) ask(want string) ([]string, error) {
	if err := c.out.Flush(); err != nil {
		return nil, err
	}
	text, err := c.in.ReadString('\n')
	if err != nil {
		return nil, err
	}
	words := strings.Fields(text)
	if len(words) == 0 || words[0] != want {
		return nil, fmt.Errorf("beanstalkd answered %q, not %s", text, want)
	}
	return words, nil
}

func (c *beanstalkClient) send(body []byte) error {
	fmt.Fprintf(c.out, "put 0 0 600 %d\r\n", len(body))
	c.out.Write(body)
	c.out.WriteString("\r\n")
	_, err := c.ask("INSERTED")
	return err
}

func (c *beanstalkClient) claim() (job, error) {
	c.out.WriteString("reserve\r\n")
	words, err := c.ask("RESERVED")
	if err != nil {
		return job{}, err
	}
	if len(words) != 3 {
		return job{}, fmt.Errorf("beanstalkd answered %v", words)
	}
	size, err := strconv.Atoi(words[2])
	if err != nil {
		return job{}, err
	}
	_, err = c.in.Discard(size + 2)
	return job{id: words[1]}, err
}

func (c *beanstalkClient) complete(j job) error {
	c.out.WriteString("delete " + j.id + "\r\n")
	_, err := c.ask("DELETED")
	return err
}

// next has no form of its own: the worker claims with the next request.
func (c *beanstalkClient) next(j job) (job, bool, error) { return job{}, false, c.complete(j) }
