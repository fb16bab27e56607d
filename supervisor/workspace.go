package supervisor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/supervisor/process"
)

// makeWorkspace makes the empty folder of c's attempt, mode 0700, of the child's
// user.
func (s *slot) makeWorkspace(c *child, who account) error {
	uid := -1
	if who.credential != nil {
		uid = int(who.credential.UID)
		if err := makeFolder(s.sup.recovery.Workspaces().Root(uid), who.credential); err != nil {
			return fmt.Errorf("make the folder of workspaces: %w", err)
		}
	}
	dir := s.sup.recovery.Workspaces().Of(c.task.ID, c.task.Attempt, uid).Path
	// A crash can have left one of an attempt that was taken back uncharged, whose
	// ordinal is used again.
	if err := removeAll(dir); err != nil {
		return fmt.Errorf("make the workspace: %w", err)
	}
	c.space = dir
	if err := makeFolder(dir, who.credential); err != nil {
		return fmt.Errorf("make the workspace: %w", err)
	}
	return nil
}

// reclaim removes c's workspace, as workspace.reclaim says. It is called once the
// attempt's end is durable.
func (s *slot) reclaim(c *child, success bool) {
	switch c.def.spec.Reclaim {
	case config.ReclaimNever:
		return
	case config.ReclaimOnSuccess:
		if !success {
			return
		}
	}
	s.dropWorkspace(c)
}

func (s *slot) dropWorkspace(c *child) {
	if c.space == "" {
		return
	}
	if err := removeAll(c.space); err != nil {
		s.log.Warn("workspace not removed", "path", c.space, "err", err)
	}
	c.space = ""
}

// removeAll is os.RemoveAll, also for what holds folders that their owner may not
// write.
func removeAll(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// makeFolder makes a folder, mode 0700, that belongs to who; nil is the
// supervisor's own user. One that exists is left as it is.
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
	return os.Chown(dir, int(who.UID), int(who.GID))
}

// resultFile is where the result of c goes that is too long to be kept with its
// message.
func (sup *Supervisor) resultFile(c *child) string {
	return filepath.Join(sup.data, "runs", "results", fmt.Sprintf("%s.%d", c.task.ID, c.task.Attempt))
}

func (sup *Supervisor) dropResult(path string) {
	if path != "" {
		_ = os.Remove(path)
	}
}
