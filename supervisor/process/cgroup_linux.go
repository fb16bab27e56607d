package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// maxIdle bounds the leaves that are kept for the next child of their name:
// making and removing one costs about as much as a tenth of a start.
const maxIdle = 128

var errNoCgroup = errors.New("no writable cgroup v2: run under systemd with Delegate=yes, or as root")

// A cgroups is a Host's folder in the cgroup v2 file system, own/sovereign-…,
// and the leaves in it, one for each tree.
type cgroups struct {
	own  string // the cgroup that the supervisor was started in
	root string
	lock *os.File // root, locked for as long as this program lives

	watching chan struct{} // holds one for each tree whose end is waited for

	mu      sync.Mutex
	idle    map[string]*leaf // mu guards; empty leaves by name
	busy    map[string]*leaf // mu guards
	limits  bool             // mu guards; memory and pids are enabled
	moved   bool             // mu guards; the supervisor is in a leaf of its own
	enabled string           // mu guards; what was added to own's subtree_control
}

// take gives the empty leaf name to a new tree, with these limits (0 = none).
func (c *cgroups) take(name string, memory, pids int64) (*leaf, error) {
	if !validLeaf(name) {
		return nil, fmt.Errorf("cgroup name %q: %w", name, unix.EINVAL)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy[name] != nil {
		return nil, fmt.Errorf("%s still holds an earlier tree: %w", c.busy[name].path, unix.EBUSY)
	}
	l := c.idle[name]
	delete(c.idle, name)
	if l == nil {
		var err error
		if l, err = c.make(name); err != nil {
			return nil, err
		}
	}
	if c.limits {
		for file, value := range map[string]int64{"memory.max": memory, "pids.max": pids} {
			if err := l.write(file, limitText(value)); err != nil {
				l.remove()
				return nil, err
			}
		}
	}
	c.busy[name] = l
	return l, nil
}

func limitText(n int64) string {
	if n == 0 {
		return "max"
	}
	return strconv.FormatInt(n, 10)
}

func validLeaf(name string) bool {
	if name == "" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "cgroup.") || name == supervisorLeaf {
		return false
	}
	return strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == ""
}

func (c *cgroups) make(name string) (*leaf, error) {
	path := filepath.Join(c.root, name)
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, err
	}
	return &leaf{name: name, path: path}, nil
}

// inherit is the leaf of a child of an earlier image; nil = it is gone.
func (c *cgroups) inherit(path string) *leaf {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return nil
	}
	l := &leaf{name: filepath.Base(path), path: path}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy[l.name] = l
	return l
}

// handOff describes the folder, without the leaves that nothing is in.
func (c *cgroups) handOff() *InheritedCgroups {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, l := range c.idle {
		l.remove()
		delete(c.idle, name)
	}
	return &InheritedCgroups{Own: c.own, Root: c.root, Limits: c.limits, Moved: c.moved, Enabled: c.enabled}
}

// forget gives up a leaf that is gone: it is made anew when it is taken again.
func (c *cgroups) forget(l *leaf) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.busy, l.name)
}

// put takes a leaf back whose tree is gone.
func (c *cgroups) put(l *leaf) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.busy, l.name)
	if len(c.idle) >= maxIdle || l.killed.Load() || l.starved.Load() {
		l.remove()
		return
	}
	c.idle[l.name] = l
}

// remove removes all that is empty, at Close.
func (c *cgroups) remove() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, l := range c.idle {
		l.remove()
		delete(c.idle, name)
	}
	c.moveBack()
	unix.Rmdir(c.root)
	if c.lock != nil {
		c.lock.Close()
	}
}

// maxWatching bounds the descriptors that are taken when everything ends at once.
const maxWatching = 64

// watch waits for its turn to wait for the end of a tree; then unwatch is to be called.
// Those before it may be trees that do not die: after a while it goes on beside them.
func (c *cgroups) watch(ctx context.Context) (unwatch func(), err error) {
	select {
	case c.watching <- struct{}{}:
		return func() { <-c.watching }, nil
	default:
	}
	patience := time.NewTimer(time.Second)
	defer patience.Stop()
	select {
	case c.watching <- struct{}{}:
		return func() { <-c.watching }, nil
	case <-patience.C:
		return func() {}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
