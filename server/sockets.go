package server

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/sovereign-run/sovereign/refusal"
)

// The sockets of a store, in its folder.
const (
	ControlSocket = "control.sock" // people; mode 0600
	WorkerSocket  = "worker.sock"  // workers of any user; mode 0666
)

// A Listener is one bound socket of a store, perhaps under two paths.
type Listener struct {
	kind  kind
	file  string      // in the folder of the store
	info  os.FileInfo // of file as we made it
	conns *net.UnixListener
	short *shortFolder // nil: file itself serves everybody

	accepting sync.RWMutex // read-held from before a connection is accepted until it is among the links

	once sync.Once
	err  error
}

// ListenControl makes control.sock in the folder data. Only the same user and
// root can use it. A socket that a dead supervisor left there is replaced: the
// caller holds the store's lock, and that decides who owns the folder (K2).
// Whatever else bears the name is left alone and refused.
func ListenControl(data string) (*Listener, error) {
	return listen(data, ControlSocket, 0o600, control)
}

// ListenWorker makes worker.sock in the folder data, for workers of any user;
// identity and lease token decide what they may do. Otherwise it is as
// ListenControl.
//
// Where the path is too long for a socket address, or a folder on the way to
// it is closed to other users while this program is root and may start children
// of other users, a second socket is made under a short path open to all (see
// Path).
func ListenWorker(data string) (*Listener, error) {
	return listen(data, WorkerSocket, 0o666, worker)
}

func listen(data, name string, mode fs.FileMode, k kind) (*Listener, error) {
	data, err := filepath.Abs(data)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", name, err)
	}
	file := socketFile(data, name)
	conns, err := bind(data, name, mode)
	if err != nil {
		return nil, cannotListen(file, err)
	}
	l := &Listener{kind: k, file: file, conns: conns}
	if l.info, err = os.Lstat(file); err != nil {
		l.Close()
		return nil, cannotListen(file, err)
	}
	if k == worker {
		removeLeftover(data)
		if len(file) > maxSocketPath || !openToAll(data) {
			if l.short, err = newShortFolder(data, mode); err != nil {
				l.Close()
				return nil, cannotListen(file, err)
			}
		}
	}
	return l, nil
}

func socketFile(data, name string) string { return filepath.Join(data, name) }

// bind makes the socket under another name, gives it its mode and renames it
// into place: nobody ever meets it with a wrong mode, and a stale one is
// replaced in one step.
func bind(folder, name string, mode fs.FileMode) (*net.UnixListener, error) {
	final, fresh := filepath.Join(folder, name), name+".new"
	for _, path := range []string{final, filepath.Join(folder, fresh)} {
		if err := onlySocket(path); err != nil {
			return nil, err
		}
	}
	if err := os.Remove(filepath.Join(folder, fresh)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var conns *net.UnixListener
	err := throughShortPath(folder, fresh, func(path string) (err error) {
		conns, err = net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		return err
	})
	if err != nil {
		return nil, err
	}
	conns.SetUnlinkOnClose(false) // the path that it knows is not the one it has
	if err := os.Chmod(filepath.Join(folder, fresh), mode); err != nil {
		conns.Close()
		return nil, err
	}
	if err := os.Rename(filepath.Join(folder, fresh), final); err != nil {
		conns.Close()
		return nil, err
	}
	return conns, nil
}

// onlySocket refuses what stands in the way and is no socket.
func onlySocket(path string) error {
	info, err := os.Lstat(path)
	if err == nil && info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s is in the way: it is no socket; move it away", path)
	}
	return nil
}

func cannotListen(file string, err error) error {
	category := refusal.Failed
	next := "see that the folder can be written to"
	switch {
	case errors.Is(err, fs.ErrPermission):
		category = refusal.PermissionDenied
	case errors.Is(err, syscall.ENOSPC):
		category, next = refusal.DiskFull, "free some space"
	}
	return refusal.New(category, "listen on "+file, err.Error(), next).Because(err)
}

// Path is where others connect: for a worker's socket the value of
// SOVEREIGN_SOCKET. It is short enough for a socket address wherever the
// folder of the store lies. Where a short path had to be made it is
// <runtime folder>/sovereign-<random>/worker.sock, of which the folder is of
// mode 0711 and goes away with Close, or at the next start after a crash.
func (l *Listener) Path() string {
	if l.short != nil {
		return filepath.Join(l.short.folder, WorkerSocket)
	}
	return l.file
}

// Close stops listening and removes the socket, unless another one stands in
// its place already. Connections that were made live on. It can be repeated.
func (l *Listener) Close() error {
	l.once.Do(func() {
		if l.short != nil {
			l.err = l.short.Close()
		}
		if now, err := os.Lstat(l.file); err == nil && l.info != nil && os.SameFile(now, l.info) {
			l.err = errors.Join(l.err, os.Remove(l.file))
		}
		l.err = errors.Join(l.err, l.conns.Close())
	})
	return l.err
}

// sockets are what to accept from.
func (l *Listener) sockets() []*net.UnixListener {
	if l.short != nil {
		return []*net.UnixListener{l.conns, l.short.conns}
	}
	return []*net.UnixListener{l.conns}
}

// Dial connects to the control.sock of the store in the folder data, at any
// depth. It is refused, unavailable, where nobody listens, and
// permission_denied where the caller is neither the same user nor root.
func Dial(data string) (net.Conn, error) { return DialSocket(filepath.Join(data, ControlSocket)) }

// DialSocket connects to a socket by its path, however long: to the value of
// SOVEREIGN_SOCKET, or to a store's worker.sock. Refusals are as of Dial.
func DialSocket(path string) (net.Conn, error) {
	var conn net.Conn
	err := throughShortPath(filepath.Dir(path), filepath.Base(path), func(short string) (err error) {
		conn, err = net.Dial("unix", short)
		return err
	})
	if err == nil {
		return conn, nil
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return nil, refusal.New(refusal.PermissionDenied, "connect to "+path, "the system refuses it to this user",
			"run the command as the user who runs the supervisor, or as root").Because(err)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOTDIR):
		return nil, refusal.New(refusal.Unavailable, "connect to "+path, "no supervisor listens there",
			"start one with `sovereign run`").Because(err)
	}
	return nil, fmt.Errorf("connect to %s: %w", path, err)
}
