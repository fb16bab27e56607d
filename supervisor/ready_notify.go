package supervisor

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

// notifyFolder is the folder of the sockets for sd_notify, beside worker.sock,
// where every child's user can reach it. With the names that notifySocket gives, a
// path in it is no longer than that of worker.sock, which fits into an address.
const notifyFolder = "sd"

// What one datagram may hold, as systemd has it too, and of that its STATUS.
const (
	maxNotice = 4096
	maxStatus = 256
)

// A child that says more in a second than this is not listened to for the rest of
// it: its own sends wait meanwhile, and the supervisor has time for others.
const (
	noticesMost   = 200
	noticesWithin = time.Second
)

// A notice is what one datagram of sd_notify(3) says, as far as it is heeded.
//
// Not heeded are MAINPID, for the process that was started is the one whose exit
// counts, and no other takes its place; FDSTORE, for descriptors are closed when
// their sender is; EXTEND_TIMEOUT_USEC and WATCHDOG_USEC, for the limits are
// those of actors.yaml.
type notice struct {
	ready     bool // READY=1
	reloading bool // RELOADING=1
	stopping  bool // STOPPING=1
	alive     bool // WATCHDOG=1
	trigger   bool // WATCHDOG=trigger: treat me as if I had been silent
	says      bool // it holds a STATUS
	status    string
}

// parseNotice reads a datagram: lines NAME=VALUE. ok is false for one that is none.
func parseNotice(b []byte) (n notice, ok bool) {
	text := string(b)
	if text == "" || strings.IndexByte(text, 0) >= 0 {
		return notice{}, false
	}
	for line := range strings.SplitSeq(text, "\n") {
		name, value, _ := strings.Cut(line, "=")
		switch name {
		case "READY":
			n.ready = n.ready || value == "1"
		case "RELOADING":
			n.reloading = n.reloading || value == "1"
		case "STOPPING":
			n.stopping = n.stopping || value == "1"
		case "WATCHDOG":
			n.alive = n.alive || value == "1"
			n.trigger = n.trigger || value == "trigger"
		case "STATUS":
			n.says, n.status = true, cutStatus(value)
		}
	}
	return n, true
}

// cutStatus is text that can be shown: valid, and not too long.
func cutStatus(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= maxStatus {
		return text
	}
	return protocol.Cut(text, maxStatus-len("…"))
}

// A word is what a child has last said of itself.
type word struct {
	Status    string // STATUS
	Reloading bool   // and not ready again
	Stopping  bool
}

// after is the word once n has been said too.
func (w word) after(n notice) word {
	switch {
	case n.stopping:
		w.Reloading, w.Stopping = false, true
	case n.reloading:
		w.Reloading = true
	case n.ready:
		w.Reloading = false
	}
	if n.says {
		w.Status = n.status
	}
	return w
}

// A notifySocket is where one child says by sd_notify(3) how it is doing. It is
// made for those that ask for it, by ready: {notify: true}.
type notifySocket struct {
	path   string
	conn   *net.UnixConn
	closed chan struct{} // closed when nothing is to be read any more
	paused atomic.Bool
	reader sync.WaitGroup
	once   sync.Once
}

// listenNotify makes a socket whose number no other of this supervisor has.
func (sup *Supervisor) listenNotify() (*notifySocket, error) {
	n, err := listenNotify(sup.notifyDir(), sup.notifySockets.Add(1))
	if err != nil {
		return nil, refusal.Of(fmt.Errorf("make the socket for sd_notify: %w", err))
	}
	return n, nil
}

func listenNotify(folder string, number uint64) (*notifySocket, error) {
	if err := os.MkdirAll(folder, 0o711); err != nil {
		return nil, err
	}
	if err := os.Chmod(folder, 0o711); err != nil { // whatever the umask is
		return nil, err
	}
	path := filepath.Join(folder, strconv.FormatUint(number, 36))
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return nil, err
	}
	n := &notifySocket{path: path, conn: conn, closed: make(chan struct{})}
	if err := wantSender(conn); err != nil {
		n.close()
		return nil, err
	}
	return n, nil
}

// allow lets the child's user send. Nobody has the path yet.
func (n *notifySocket) allow(who account) error {
	if err := openToSenders(n.path, who); err != nil {
		return refusal.Of(fmt.Errorf("open the socket for sd_notify to the actor's user: %w", err))
	}
	return nil
}

func (sup *Supervisor) notifyDir() string {
	if sup.socket == "" {
		return filepath.Join(sup.data, notifyFolder)
	}
	return filepath.Join(filepath.Dir(sup.socket), notifyFolder)
}

// clearNotify removes the sockets, also those that a dead supervisor left.
func (sup *Supervisor) clearNotify() error { return os.RemoveAll(sup.notifyDir()) }

// serve hears what c's tree says, until pause or close. It is called when c runs, and to
// go on after pause.
func (n *notifySocket) serve(c *child, uid int) {
	n.paused.Store(false)
	_ = n.conn.SetReadDeadline(time.Time{})
	n.reader.Go(func() {
		if err := n.read(c, uid); err != nil && !errors.Is(err, net.ErrClosed) && !n.paused.Load() {
			c.slot.log.Warn("nothing more is heard from sd_notify", "err", err)
		}
	})
}

func (n *notifySocket) read(c *child, uid int) error {
	raw, err := n.conn.SyscallConn()
	if err != nil {
		return err
	}
	var since time.Time
	heard, warned := 0, false
	for {
		var d datagram
		var failed error
		err := raw.Read(func(fd uintptr) (done bool) {
			done, failed = d.receive(int(fd))
			return done
		})
		if err = errors.Join(err, failed); err != nil {
			return err
		}
		if d.ok {
			if err := d.from(c.proc, uid); err == nil {
				c.heed(d.notice)
			} else if !warned {
				warned = true // once: whoever repeats it does not fill the log
				c.slot.log.Warn("sd_notify: not heeded", "err", err)
			}
		}
		d.answer() // what it says has had its effect: that is what a barrier waits for
		now := time.Now()
		if now.Sub(since) >= noticesWithin {
			since, heard = now, 0
		}
		if heard++; heard >= noticesMost && !n.paused.Load() && !n.rest(noticesWithin-now.Sub(since)) {
			return net.ErrClosed
		}
	}
}

// rest waits for d, and reports whether it did before close.
func (n *notifySocket) rest(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-n.closed:
		return false
	}
}

// pause leaves what comes in the socket, until serve is called again; nothing is heard
// from it when it returns.
func (n *notifySocket) pause() {
	n.paused.Store(true)
	_ = n.conn.SetReadDeadline(time.Unix(1, 0))
	n.reader.Wait()
}

// close removes the socket; nothing is heard from it when it returns. A nil one
// needs no closing.
func (n *notifySocket) close() {
	if n == nil {
		return
	}
	n.once.Do(func() {
		close(n.closed)
		_ = os.Remove(n.path) // what is left is removed by the next start
		n.conn.Close()
		n.reader.Wait()
	})
}

// heed acts on what the child's tree says.
func (c *child) heed(n notice) {
	if n.alive {
		c.aliveAt.Store(int64(c.slot.sup.now()))
	}
	before := c.word()
	if after := before.after(n); after != before {
		c.said.Store(&after)
		c.slot.sup.changes.tell()
	}
	if n.ready {
		c.slot.isReady(c)
	}
	if n.trigger {
		c.slot.giveUpOn(c)
	}
}

// asksToNotify reports whether the child says itself that it is ready.
func (c *child) asksToNotify() bool {
	spec := c.def.spec
	return spec.Mode != config.Task && spec.Ready != nil && spec.Ready.Notify
}

// asksToBeSeen reports whether it is looked at whether the child is ready.
func (c *child) asksToBeSeen() bool {
	spec := c.def.spec
	return spec.Mode != config.Task && spec.Ready != nil && !spec.Ready.Notify
}

// word is what the child has last said of itself.
func (c *child) word() word {
	if w := c.said.Load(); w != nil {
		return *w
	}
	return word{}
}

// giveUpOn ends c, which asks for that, as its watchdog would.
func (s *slot) giveUpOn(c *child) {
	s.post(func() {
		if s.child != c || s.spec().Watchdog == 0 {
			return
		}
		if c.because(byWatchdog, s.spec().Watchdog.String(), mailbox.Ref{}) {
			s.sup.note(c, protocol.EventWatchdog, "it asked for its end (WATCHDOG=trigger)")
			s.step(kill)
		}
	})
}

// env is what a child is told of its socket. WATCHDOG_PID is left out: it is
// not known before the child runs, and without it the watchdog is that of the whole
// tree (sd_watchdog_enabled(3)).
func (n *notifySocket) env(watchdog time.Duration) []string {
	env := []string{"NOTIFY_SOCKET=" + n.path}
	if watchdog > 0 {
		env = append(env, "WATCHDOG_USEC="+strconv.FormatInt(watchdog.Microseconds(), 10))
	}
	return env
}
