package lazyfs

import (
	"bufio"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// server is one mounted file system.
type server struct {
	mu    sync.Mutex // guards all below
	disk  *Disk
	log   []Op
	next  uint64 // the number last given
	fault fault
}

// did records an operation.
func (s *server) did(op Op) {
	s.disk.Apply(op)
	s.log = append(s.log, op)
}

// sync makes a node durable, unless that is to fail. f is nil for a folder.
func (s *server) sync(id uint64, f *file) syscall.Errno {
	fails, e := s.fault.sync()
	if e != 0 {
		return e
	}
	if !fails || !s.fault.lost {
		s.did(Op{Kind: Sync, Node: id})
	} else if f != nil {
		// The disk has what it had. The length is the file system's own, and stays.
		s.did(Op{Kind: Lose, Node: id})
		s.did(Op{Kind: Truncate, Node: id, Off: int64(len(f.data))})
		f.data = resize(slices.Clone(s.disk.durable(id)), int64(len(f.data)))
	}
	if fails {
		return syscall.EIO
	}
	return 0
}

// Serve mounts an empty file system on the folder dir and does what it reads from
// in, line by line, until the end of it. To each line it answers one: "ok", or what
// went wrong; and one before the first, once it is mounted.
//
//	cut none|all|SEED   the power goes, and the file system is mounted again
//	load FILE           the same with the Image in FILE
//	log FILE            the log since it was mounted goes to FILE
//
// Nobody may have a file open when it is mounted again. FILEs are in the format of
// Save.
func Serve(dir string, in io.Reader, out io.Writer) error {
	s, unmount, err := mount(dir, Image{})
	say := func(err error) { fmt.Fprintln(out, answer(err)) }
	say(err)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		what, arg, _ := strings.Cut(lines.Text(), " ")
		image := Image{}
		switch what {
		case "log":
			s.mu.Lock()
			err := Save(arg, s.log)
			s.mu.Unlock()
			say(err)
			continue
		case "cut":
			s.mu.Lock()
			keep, err := ParseKeep(arg)
			if err == nil {
				image = s.disk.Cut(keep)
			}
			s.mu.Unlock()
			if err != nil {
				say(err)
				continue
			}
		case "load":
			if err := Load(arg, &image); err != nil {
				say(err)
				continue
			}
		default:
			say(fmt.Errorf("unknown command %q", what))
			continue
		}
		if err := unmount(); err != nil {
			say(err)
			return err
		}
		if s, unmount, err = mount(dir, image); err != nil {
			say(err)
			return err
		}
		say(nil)
	}
	return unmount()
}

func answer(err error) string {
	if err == nil {
		return "ok"
	}
	return strings.ReplaceAll(err.Error(), "\n", " ")
}

func mount(dir string, image Image) (*server, func() error, error) {
	s := &server{disk: NewDisk(image)}
	s.next = slices.Max(slices.Collect(maps.Keys(s.disk.nodes)))
	at := time.Duration(0) // names and sizes are asked for each time
	srv, err := fs.Mount(dir, &folder{s: s, id: Root}, &fs.Options{
		AttrTimeout: &at, EntryTimeout: &at,
		MountOptions: fuse.MountOptions{DirectMountStrict: true, FsName: "lazyfs", Name: "lazyfs", MaxWrite: 1 << 17},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("mount: %w", err)
	}
	return s, func() error {
		if err := unix.Unmount(dir, 0); err != nil {
			return errors.Join(fmt.Errorf("unmount: %w", err), unix.Unmount(dir, unix.MNT_DETACH))
		}
		srv.Wait()
		return nil
	}, nil
}

// Save and Load keep a log or an image in a file.
func Save(name string, v any) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriter(f)
	if err := gob.NewEncoder(w).Encode(v); err != nil {
		return err
	}
	return w.Flush()
}

// Load reads what Save wrote.
func Load(name string, v any) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return gob.NewDecoder(bufio.NewReader(f)).Decode(v)
}

// ParseKeep reads none, all, or the seed of Some.
func ParseKeep(s string) (Keep, error) {
	switch s {
	case "none":
		return None, nil
	case "all":
		return All, nil
	}
	var seed uint64
	_, err := fmt.Sscan(s, &seed)
	return Some(seed), err
}
