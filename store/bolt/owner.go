package bolt

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// openFile is os.OpenFile for the files of a store. One that root creates belongs to
// the owner of its folder: else a single command of root's would lock the user out
// whose service the store is. A file that is there keeps its owner, since its name may
// be a link that somebody has put there.
func openFile(name string, flag int, mode os.FileMode) (*os.File, error) {
	if flag&os.O_CREATE == 0 || os.Geteuid() != 0 {
		return os.OpenFile(name, flag, mode)
	}
	f, err := os.OpenFile(name, flag|os.O_EXCL, mode)
	if errors.Is(err, fs.ErrExist) && flag&os.O_EXCL == 0 {
		return os.OpenFile(name, flag, mode)
	}
	if err != nil {
		return nil, err
	}
	if err := giveToOwner(f); err != nil {
		return nil, errors.Join(err, os.Remove(name), f.Close())
	}
	return f, nil
}

// giveToOwner gives f, which was just created, to the owner of its folder. Where the
// system does not let root do that it stays as it is.
func giveToOwner(f *os.File) error {
	var folder, own unix.Stat_t
	if err := unix.Stat(filepath.Dir(f.Name()), &folder); err != nil {
		return err
	}
	if err := unix.Fstat(int(f.Fd()), &own); err != nil {
		return err
	}
	if folder.Uid == own.Uid {
		return nil
	}
	err := f.Chown(int(folder.Uid), int(folder.Gid))
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		return nil
	}
	return err
}
