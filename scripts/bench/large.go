package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/store/bolt"
)

// largeStores measures what grows with the number of waiting messages: the start
// after a SIGKILL, verify, looking at the inbox, and backup beside traffic.
func (b *bench) largeStores(ctx context.Context) error {
	fmt.Printf("messages of %d bytes wait; the page cache is warm; one run each\n\n", smallBody)
	type seen struct {
		n     int
		start start
		check checking
		copy  copying
		looks [][]float64
	}
	var all []seen
	for _, n := range b.stores {
		dir, err := b.folder()
		if err != nil {
			return err
		}
		s := seen{n: n}
		if err := preload(ctx, filepath.Join(dir, ".sovereign"), n, make([]byte, smallBody)); err != nil {
			return err
		}
		if s.start, err = b.killedStart(ctx, dir); err != nil {
			return fmt.Errorf("%d messages, start: %w", n, err)
		}
		if s.check, err = b.verifyStore(ctx, dir); err != nil {
			return fmt.Errorf("%d messages, verify: %w", n, err)
		}
		if s.looks, err = b.lookStore(ctx, dir); err != nil {
			return fmt.Errorf("%d messages, inbox: %w", n, err)
		}
		if s.copy, err = b.backupStore(ctx, dir); err != nil {
			return fmt.Errorf("%d messages, backup: %w", n, err)
		}
		all = append(all, s)
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	fmt.Print("from exec to the first claim served, after a SIGKILL with one claim in flight; ms\n\n")
	t := newTable("waiting", "file MB", "first claim", "of that: open the store", "open the mailbox", "load the index", "RSS MiB", "anonymous MiB")
	for _, s := range all {
		t.row(strconv.Itoa(s.n), figure(s.start.size/1e6), figure(millis(s.start.first)), figure(millis(s.start.store)),
			figure(millis(s.start.mailbox)), figure(millis(s.start.index)), figure(s.start.rss/1024), figure(s.start.anonymous/1024))
	}
	t.end()
	fmt.Print("\nsovereign verify of the stopped store\n\n")
	t = newTable("waiting", "s", "highest anonymous MiB", "highest RSS MiB, with the mapped file")
	for _, s := range all {
		t.row(strconv.Itoa(s.n), figure(s.check.took.Seconds()), figure(s.check.anonymous/1024), figure(s.check.rss/1024))
	}
	t.end()
	fmt.Printf("\nlooking at it while its supervisor runs, from exec to exit; p50, lowest and highest of %d, ms\n\n", looks)
	heads := []string{"waiting"}
	for _, l := range looking {
		heads = append(heads, l.head)
	}
	t = newTable(heads...)
	for _, s := range all {
		row := []string{strconv.Itoa(s.n)}
		for _, l := range s.looks {
			row = append(row, fmt.Sprintf("%s (%s to %s)", figure(l[1]), figure(l[0]), figure(l[2])))
		}
		t.row(row...)
	}
	t.end()
	fmt.Printf("\nsovereign backup beside %d clients that send without a pause, and cp with fsync of the same file, without traffic\n\n", copySenders)
	t = newTable("waiting", "file MB", "backup MB/s", "cp MB/s", "send p50 ms before", "p99 before", "p50 during", "p99 during", "sends during")
	for _, s := range all {
		t.row(strconv.Itoa(s.n), figure(s.copy.size/1e6), figure(s.copy.size/1e6/s.copy.backup.Seconds()), figure(s.copy.size/1e6/s.copy.cp.Seconds()),
			figure(s.copy.before.at(0.5)), figure(s.copy.before.at(0.99)), figure(s.copy.during.at(0.5)), figure(s.copy.during.at(0.99)),
			strconv.Itoa(len(s.copy.during)))
	}
	t.end()
	return nil
}

// smallBody is the size of the messages of large stores.
const smallBody = 100

// A start is what one start after a SIGKILL took.
type start struct {
	first                 time.Duration // from exec to the answer of the first claim, in a child
	store, mailbox, index time.Duration // the same steps in this process, in turn
	size, rss, anonymous  float64       // of the file in bytes; of the supervisor in KiB
}

// killedStart starts a supervisor in dir, kills it while its worker holds a message,
// and starts it again.
func (b *bench) killedStart(ctx context.Context, dir string) (s start, err error) {
	p, err := openStore(ctx, filepath.Join(dir, ".sovereign"))
	if err != nil {
		return s, err
	}
	c, err := p.client(-1)
	if err == nil {
		// Two, so that there is one to be claimed also while the other waits.
		err = errors.Join(c.send(nil), c.send(nil))
	}
	if err := errors.Join(err, p.stop()); err != nil {
		return s, err
	}
	f, err := b.launchWork(dir, workerActor, 1)
	if err != nil {
		return s, err
	}
	if _, err := f.up(ctx); err != nil {
		return s, errors.Join(err, f.stop())
	}
	f.kill()
	if f, err = b.launchWork(dir, workerActor, 1); err != nil {
		return s, err
	}
	l, err := f.up(ctx)
	s.first = l.at.Sub(f.started)
	used := footprintOf(f.pid())
	s.rss, s.anonymous = used.rss, used.anonymous
	if err := errors.Join(err, f.stop()); err != nil {
		return s, err
	}
	return s, s.steps(ctx, filepath.Join(dir, ".sovereign"))
}

// steps makes the steps of a start that read the store.
func (s *start) steps(ctx context.Context, dir string) error {
	info, err := os.Stat(filepath.Join(dir, bolt.DataFile))
	if err != nil {
		return err
	}
	s.size = float64(info.Size())
	at := time.Now()
	lap := func(d *time.Duration) { now := time.Now(); *d = now.Sub(at); at = now }
	db, err := bolt.Open(dir, bolt.Options{})
	if err != nil {
		return err
	}
	lap(&s.store)
	leases := fence.New(db, func() fence.Instant { return fence.Instant(db.Now()) })
	box, err := mailbox.Open(ctx, db, leases, mailbox.Options{})
	if err != nil {
		return errors.Join(err, db.Close())
	}
	lap(&s.mailbox)
	err = box.Load(ctx)
	lap(&s.index)
	return errors.Join(err, box.Close(), db.Close())
}

// A checking is what verify took.
type checking struct {
	took           time.Duration
	rss, anonymous float64 // KiB, the highest that were seen
}

func (b *bench) verifyStore(ctx context.Context, dir string) (c checking, err error) {
	cmd := exec.CommandContext(ctx, b.sovereign, "verify", "--data", filepath.Join(dir, ".sovereign"))
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return c, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			c.anonymous = max(c.anonymous, fields(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))["RssAnon"])
			continue
		case err = <-ended:
		}
		c.took = time.Since(began)
		if used, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
			c.rss = float64(used.Maxrss)
		}
		return c, err
	}
}

// copySenders send while a backup is made.
const copySenders = 4

// A copying is what a backup took, and what it did to those who sent meanwhile.
type copying struct {
	size           float64 // bytes of the backup
	backup, cp     time.Duration
	before, during times // of single sends
}

func (b *bench) backupStore(ctx context.Context, dir string) (c copying, err error) {
	f, err := b.launchWork(dir, workerActor, 1)
	if err != nil {
		return c, err
	}
	running := true
	defer func() {
		if running {
			err = errors.Join(err, f.stop())
		}
	}()
	if _, err := f.up(ctx); err != nil {
		return c, err
	}
	data := filepath.Join(dir, ".sovereign")
	// The senders note their times under one of two heads.
	var during, enough atomic.Bool
	var mu sync.Mutex // guards c.before and c.during
	var senders sync.WaitGroup
	failed := make(chan error, copySenders)
	p := &product{fleet: f, to: []string{recipient}}
	for range copySenders {
		senders.Go(func() {
			one, err := p.client(-1)
			if err != nil {
				failed <- err
				return
			}
			defer one.close()
			body := make([]byte, smallBody)
			for !enough.Load() && ctx.Err() == nil {
				head, at := during.Load(), time.Now()
				if err := one.send(body); err != nil {
					failed <- err
					return
				}
				took := time.Since(at)
				mu.Lock()
				if !head {
					c.before = append(c.before, took)
				} else if during.Load() {
					c.during = append(c.during, took)
				}
				mu.Unlock()
			}
		})
	}
	err = rest(ctx, 3*time.Second)
	out := filepath.Join(dir, "backup.db")
	if err == nil {
		during.Store(true)
		began := time.Now()
		var said []byte
		said, err = exec.CommandContext(ctx, b.sovereign, "backup", "--data", data, out).CombinedOutput()
		c.backup = time.Since(began)
		during.Store(false)
		if err != nil {
			err = fmt.Errorf("backup: %w: %s", err, strings.TrimSpace(string(said)))
		}
	}
	enough.Store(true)
	senders.Wait()
	select {
	case e := <-failed:
		err = errors.Join(err, e)
	default:
	}
	running = false
	if err := errors.Join(err, f.stop()); err != nil {
		return c, err
	}
	info, err := os.Stat(out)
	if err != nil {
		return c, err
	}
	c.size = float64(info.Size())
	if c.cp, err = copied(ctx, out, filepath.Join(dir, "copy.db")); err != nil {
		return c, err
	}
	return c, os.Remove(out)
}

// copied is how long cp takes, until its file is on disk.
func copied(ctx context.Context, from, to string) (time.Duration, error) {
	began := time.Now()
	if err := exec.CommandContext(ctx, "cp", "--reflink=never", from, to).Run(); err != nil {
		return 0, err
	}
	f, err := os.Open(to)
	if err != nil {
		return 0, err
	}
	err = errors.Join(f.Sync(), f.Close())
	return time.Since(began), errors.Join(err, os.Remove(to))
}
