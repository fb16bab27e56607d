package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sovereign-run/sovereign/refusal"
)

// strangeError says that what has the name of a file of the store is none.
type strangeError struct{ name, is string }

func (e *strangeError) Error() string {
	return fmt.Sprintf("%s is %s, and a store keeps files of its own only", e.name, e.is)
}

// strangeRefusal is the refusal for err.
func strangeRefusal(doing string, err *strangeError) error {
	return refusal.New(refusal.StoreCorrupt, doing, err.Error(),
		"see who has put it there; then put the file itself there, or move away what is (a folder that holds the whole store may be linked, or named with --data)").Because(err)
}

// openFile is os.OpenFile for the files of a store. It follows no link, since who owns
// the folder could name any file of root's by one, and waits for nobody on a FIFO: what
// is no regular file is refused with a strangeError.
//
// A file that root creates belongs to the owner of its folder: else a single command of
// root's would lock the user out whose service the store is. One that is there keeps its
// owner.
func openFile(name string, flag int, mode os.FileMode) (*os.File, error) {
	flag |= unix.O_NOFOLLOW | unix.O_NONBLOCK
	if flag&os.O_CREATE != 0 && os.Geteuid() == 0 {
		f, err := os.OpenFile(name, flag|os.O_EXCL, mode)
		if err == nil {
			if err := giveToOwner(f); err != nil {
				return nil, errors.Join(err, os.Remove(name), f.Close())
			}
			return f, nil
		}
		if !errors.Is(err, fs.ErrExist) || flag&os.O_EXCL != 0 {
			return nil, err
		}
	}
	f, err := os.OpenFile(name, flag, mode)
	if err != nil {
		if info, statErr := os.Lstat(name); statErr == nil && !info.Mode().IsRegular() && flag&os.O_EXCL == 0 {
			err = strange(name, info.Mode())
		}
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = strange(name, info.Mode())
	}
	if err == nil { // it need not wait to be opened, but for what it is asked then
		err = unix.SetNonblock(int(f.Fd()), false)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// strange returns nil for a regular file.
func strange(name string, mode fs.FileMode) error {
	is := "no regular file"
	switch {
	case mode.IsRegular():
		return nil
	case mode&fs.ModeSymlink != 0:
		is = "a link"
	case mode.IsDir():
		is = "a folder"
	case mode&fs.ModeNamedPipe != 0:
		is = "a FIFO"
	}
	return &strangeError{name, is}
}

// makeFolder is os.MkdirAll, with mode 0711, for the folder of a store. One that root
// makes belongs to the owner of the folder that it is in, or it would be closed to the
// user whose project that is.
func makeFolder(dir string) error {
	if _, err := os.Stat(dir); err == nil || os.Geteuid() != 0 {
		return os.MkdirAll(dir, 0o711)
	}
	dir = strings.TrimRight(dir, "/")
	above, _ := filepath.Split(dir)
	if above == "" {
		above = "."
	}
	if err := makeFolder(above); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o711); err != nil {
		return os.MkdirAll(dir, 0o711) // made meanwhile, or not to be made
	}
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	if err := giveToOwner(f); err != nil {
		return errors.Join(err, os.Remove(dir), f.Close())
	}
	return f.Close()
}

// giveToOwner gives f, which was just created by us, to the owner of its folder. Where
// the system does not let root do that it stays as it is.
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
