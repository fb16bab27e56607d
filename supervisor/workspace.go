package supervisor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sovereign-run/sovereign/recovery"
	"github.com/sovereign-run/sovereign/supervisor/process"
)

// makeWorkspace makes the empty folder of c's attempt, mode 0700, of the child's
// user.
func (s *slot) makeWorkspace(c *child, who account) error {
	all := s.sup.recovery.Workspaces()
	uid, around := -1, func() error { return nil }
	if who.credential != nil {
		uid = int(who.credential.UID)
		around = func() error { return makePassage(all.Root(uid)) }
	}
	if err := around(); err != nil {
		return fmt.Errorf("make the folder of workspaces: %w", err)
	}
	ws := all.Of(c.task.ID, c.task.Attempt, uid)
	// A crash can have left one of an attempt that was taken back uncharged, whose
	// ordinal is used again.
	if err := all.Remove(ws); err != nil {
		return fmt.Errorf("make the workspace: %w", err)
	}
	c.space = ws.Path
	err := makeFolder(c.space, who.credential)
	if errors.Is(err, fs.ErrNotExist) { // somebody removed the folder of workspaces
		if err = os.MkdirAll(filepath.Dir(c.space), 0o700); err == nil {
			err = errors.Join(around(), makeFolder(c.space, who.credential))
		}
	}
	if err != nil {
		return fmt.Errorf("make the workspace: %w", err)
	}
	return nil
}

// makePassage makes a folder of the supervisor's own user that others pass through to
// what is theirs in it, and cannot change: mode 0711. One that belongs to another, as
// these once did, is taken back.
func makePassage(dir string) error {
	if err := os.Mkdir(dir, 0o711); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	f, err := os.OpenFile(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() {
		if err := f.Chown(os.Geteuid(), os.Getegid()); err != nil {
			return err
		}
	}
	if info.Mode().Perm() == 0o711 {
		return nil
	}
	return f.Chmod(0o711) // the umask may have taken some of it
}

// reclaim removes c's workspace, as workspace.reclaim says. It is called once the
// attempt's end is durable.
func (s *slot) reclaim(c *child, success bool) {
	if recovery.Reclaims(string(c.def.spec.Reclaim), success) {
		s.dropWorkspace(c)
	}
}

func (s *slot) dropWorkspace(c *child) {
	if c.space == "" {
		return
	}
	if err := s.sup.recovery.Workspaces().Remove(recovery.Workspace{Path: c.space}); err != nil {
		s.log.Warn("workspace not removed", "path", c.space, "err", err)
	}
	c.space = ""
}

// makeFolder makes a folder, mode 0700, that belongs to who; nil is the
// supervisor's own user. One that exists is left as it is. Should who be able to write
// the folder around it, something else can have its name by the time that it is given to
// who: no link is followed then, and what is given is a folder.
func makeFolder(dir string, who *process.Credential) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	}
	if who == nil {
		return nil
	}
	f, err := os.OpenFile(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Chown(int(who.UID), int(who.GID)), f.Close())
}

// resultFile is where the result of c goes that is too long to be kept with its
// message.
func (sup *Supervisor) resultFile(c *child) string {
	return sup.recovery.Workspaces().Result(c.task.ID, c.task.Attempt).Path
}

func (sup *Supervisor) dropResult(path string) {
	if path != "" {
		_ = os.Remove(path)
	}
}
