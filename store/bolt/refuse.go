package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sovereign-run/sovereign/refusal"
)

const corruptNext = "run `sovereign verify` to see the damage, then restore the newest backup with `sovereign restore`"

func corruptRefusal(doing, why string) *refusal.Error {
	return refusal.New(refusal.StoreCorrupt, doing, why, corruptNext)
}

func rolledBackRefusal(dir, why string) *refusal.Error {
	return refusal.New(refusal.StoreRolledBack,
		"open the store in "+dir, why,
		"put the right mailbox.db back, or accept this one with `sovereign recover --accept-rollback`: "+
			"a new epoch starts, and messages that it holds as claimed are parked")
}

func fullRefusal(doing string, err error) *refusal.Error {
	return refusal.New(refusal.DiskFull, doing, err.Error(),
		"make room on the disk (or raise the quota) that holds the store").Later().Because(err)
}

// fileRefusal is the refusal for an error of a file operation.
func fileRefusal(doing string, err error) error {
	if e, ok := errors.AsType[*strangeError](err); ok {
		return strangeRefusal(doing, e)
	}
	switch {
	case isFull(err), growthRefused(err):
		return fullRefusal(doing, err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, unix.EROFS):
		return refusal.New(refusal.PermissionDenied, doing, err.Error(),
			"check the owner and mode of the folder and its files, and that its disk is mounted for writing").Because(err)
	}
	if errors.Is(err, unix.ENOTDIR) {
		return refusal.New(refusal.BadRequest, doing, "there is a file where a folder should be", "name a folder").Because(err)
	}
	if p, ok := errors.AsType[*fs.PathError](err); ok && p.Op == "mkdir" && errors.Is(err, unix.EEXIST) {
		return refusal.New(refusal.BadRequest, doing, p.Path+" is a link that leads nowhere",
			"mount the disk that it leads to, or name a folder").Because(err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// isFull reports whether err says that there is no room for a write: no space,
// quota, or a limit on file size.
func isFull(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EFBIG)
}

// growthRefused reports whether err is bbolt's for a file that could not be made
// longer for want of room. bbolt 1.5.0 keeps only the text of that error
// (db.grow), so the text is all there is; TestUpdate_RefusesBeyondTheFileSizeLimit
// holds this against the bbolt in use.
func growthRefused(err error) bool {
	if !strings.HasPrefix(err.Error(), "file resize error: ") {
		return false
	}
	for _, e := range []unix.Errno{unix.ENOSPC, unix.EDQUOT, unix.EFBIG} {
		if strings.HasSuffix(err.Error(), e.Error()) {
			return true
		}
	}
	return false
}

// isSync reports whether a commit failed in a sync, after which the kernel may
// have forgotten what it could not write. bbolt 1.5.0 returns a bare errno for
// fdatasync on Linux, a path error elsewhere, and only text when it grew the file.
func isSync(err error) bool {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Op == "sync"
	}
	if _, ok := errors.AsType[unix.Errno](err); ok {
		return true
	}
	return strings.HasPrefix(err.Error(), "file sync error: ")
}
