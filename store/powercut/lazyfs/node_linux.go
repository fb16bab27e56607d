package lazyfs

import (
	"context"
	"slices"
	"strings"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// folder is a folder of the mounted file system. The bridge of go-fuse keeps its
// children.
type folder struct {
	fs.Inode
	s  *server
	id uint64
}

// file is a file of the mounted file system.
type file struct {
	fs.Inode
	s    *server
	id   uint64
	data []byte         // guarded by s.mu: what a program reads
	room map[int64]bool // guarded by s.mu: blocks that have a place on the disk
}

const block = 4096

// places gives the blocks of [off, end) a place on the disk, unless that is full.
func (f *file) places(off, end int64) syscall.Errno {
	var more []int64
	for b := off / block; b*block < end; b++ {
		if !f.room[b] {
			more = append(more, b)
		}
	}
	if e := f.s.fault.take(int64(len(more)) * block); e != 0 {
		return e
	}
	if f.room == nil {
		f.room = map[int64]bool{}
	}
	for _, b := range more {
		f.room[b] = true
	}
	return 0
}

var (
	_ fs.NodeCreater    = (*folder)(nil)
	_ fs.NodeMkdirer    = (*folder)(nil)
	_ fs.NodeUnlinker   = (*folder)(nil)
	_ fs.NodeRmdirer    = (*folder)(nil)
	_ fs.NodeRenamer    = (*folder)(nil)
	_ fs.NodeFsyncer    = (*folder)(nil)
	_ fs.NodeGetattrer  = (*folder)(nil)
	_ fs.NodeSetattrer  = (*folder)(nil)
	_ fs.NodeSetxattrer = (*folder)(nil)
	_ fs.NodeGetxattrer = (*folder)(nil)
	_ fs.NodeOpener     = (*file)(nil)
	_ fs.NodeReader     = (*file)(nil)
	_ fs.NodeWriter     = (*file)(nil)
	_ fs.NodeFsyncer    = (*file)(nil)
	_ fs.NodeFlusher    = (*file)(nil)
	_ fs.NodeGetattrer  = (*file)(nil)
	_ fs.NodeSetattrer  = (*file)(nil)
	_ fs.NodeAllocater  = (*file)(nil)
	_ fs.NodeOnAdder    = (*folder)(nil)
)

// keepCache: what the kernel has read or written stays in its memory, as with any
// file system on a disk.
const keepCache = fuse.FOPEN_KEEP_CACHE

// OnAdd builds the tree of what was on the disk before.
func (d *folder) OnAdd(ctx context.Context) {
	for name, id := range d.s.disk.nodes[d.id].entries {
		n := d.s.disk.nodes[id]
		if n.folder {
			d.AddChild(name, d.NewPersistentInode(ctx, &folder{s: d.s, id: id}, fs.StableAttr{Mode: fuse.S_IFDIR}), true)
		} else {
			d.AddChild(name, d.NewPersistentInode(ctx, &file{s: d.s, id: id, data: slices.Clone(n.data)}, fs.StableAttr{Mode: fuse.S_IFREG}), true)
		}
	}
}

func (d *folder) Create(ctx context.Context, name string, _, _ uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	id, e := d.add(Create, name)
	if e != 0 {
		return nil, nil, 0, e
	}
	out.Mode = 0o644
	return d.NewPersistentInode(ctx, &file{s: d.s, id: id}, fs.StableAttr{Mode: fuse.S_IFREG}), nil, keepCache, 0
}

func (d *folder) Mkdir(ctx context.Context, name string, _ uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	id, e := d.add(Folder, name)
	if e != 0 {
		return nil, e
	}
	out.Mode = 0o755
	return d.NewPersistentInode(ctx, &folder{s: d.s, id: id}, fs.StableAttr{Mode: fuse.S_IFDIR}), 0
}

func (d *folder) add(kind Kind, name string) (uint64, syscall.Errno) {
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	if e := d.s.fault.take(1); e != 0 {
		return 0, e
	}
	d.s.next++
	d.s.did(Op{Kind: kind, Node: d.id, Name: name, Child: d.s.next})
	return d.s.next, 0
}

func (d *folder) Unlink(_ context.Context, name string) syscall.Errno {
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	if e := d.s.fault.step(); e != 0 {
		return e
	}
	d.s.did(Op{Kind: Remove, Node: d.id, Name: name})
	return 0
}

func (d *folder) Rmdir(ctx context.Context, name string) syscall.Errno {
	if child := d.GetChild(name); child != nil && len(child.Children()) > 0 {
		return syscall.ENOTEMPTY
	}
	return d.Unlink(ctx, name)
}

func (d *folder) Rename(_ context.Context, name string, parent fs.InodeEmbedder, to string, flags uint32) syscall.Errno {
	p, ok := parent.(*folder)
	if !ok || p.id != d.id {
		return syscall.EXDEV
	}
	if flags != 0 {
		return syscall.EINVAL
	}
	id := uint64(0)
	switch child := d.GetChild(name).Operations().(type) {
	case *file:
		id = child.id
	case *folder:
		id = child.id
	}
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	if e := d.s.fault.step(); e != 0 {
		return e
	}
	d.s.did(Op{Kind: Rename, Node: d.id, Name: name, To: to, Child: id})
	return 0
}

func (d *folder) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno {
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	return d.s.sync(d.id, nil)
}

func (d *folder) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	out.Mode = 0o755
	return 0
}

func (d *folder) Setattr(ctx context.Context, h fs.FileHandle, _ *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	return d.Getattr(ctx, h, out)
}

// Setxattr is Tell.
func (d *folder) Setxattr(_ context.Context, attr string, data []byte, _ uint32) syscall.Errno {
	if attr != attribute {
		return syscall.ENOTSUP
	}
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	if text, ok := strings.CutPrefix(string(data), "note "); ok {
		if !d.s.fault.off {
			d.s.did(Op{Kind: Note, Name: text})
		}
		return 0
	}
	f := fault{}
	if string(data) != "clear" {
		var err error
		if f, err = parseFault(string(data)); err != nil {
			return syscall.EINVAL
		}
	}
	d.s.fault = f
	return 0
}

// Getxattr is Fired.
func (d *folder) Getxattr(_ context.Context, attr string, dest []byte) (uint32, syscall.Errno) {
	if attr != attribute {
		return 0, syscall.ENODATA
	}
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	answer := "no"
	if d.s.fault.fired {
		answer = "fired"
	}
	if len(dest) < len(answer) {
		return uint32(len(answer)), syscall.ERANGE
	}
	return uint32(copy(dest, answer)), 0
}

func (f *file) Open(_ context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	if flags&syscall.O_TRUNC != 0 {
		f.s.mu.Lock()
		defer f.s.mu.Unlock()
		return nil, keepCache, f.truncate(0)
	}
	return nil, keepCache, 0
}

func (f *file) Read(_ context.Context, _ fs.FileHandle, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	n := 0
	if off < int64(len(f.data)) {
		n = copy(dest, f.data[off:])
	}
	return fuse.ReadResultData(dest[:n]), 0
}

func (f *file) Write(_ context.Context, _ fs.FileHandle, data []byte, off int64) (uint32, syscall.Errno) {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	if e := f.places(off, off+int64(len(data))); e != 0 {
		return 0, e
	}
	f.data = write(f.data, off, data)
	f.s.did(Op{Kind: Write, Node: f.id, Off: off, Data: slices.Clone(data)})
	return uint32(len(data)), 0
}

// truncate changes the length of the file, under s.mu.
func (f *file) truncate(size int64) syscall.Errno {
	if size <= int64(len(f.data)) {
		if e := f.s.fault.step(); e != 0 {
			return e
		}
		for b := range f.room {
			if b*block >= size {
				delete(f.room, b)
				f.s.fault.give(block)
			}
		}
	} else if e := f.s.fault.take(1); e != 0 { // a hole takes no room, but a quota may forbid it
		return e
	}
	f.data = resize(f.data, size)
	f.s.did(Op{Kind: Truncate, Node: f.id, Off: size})
	return 0
}

func (f *file) Allocate(_ context.Context, _ fs.FileHandle, off, size uint64, mode uint32) syscall.Errno {
	if mode != 0 {
		return syscall.ENOTSUP
	}
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	end := int64(off + size)
	if e := f.places(int64(off), end); e != 0 || end <= int64(len(f.data)) {
		return e
	}
	f.data = resize(f.data, end)
	f.s.did(Op{Kind: Truncate, Node: f.id, Off: end})
	return 0
}

func (f *file) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	return f.s.sync(f.id, f)
}

func (f *file) Flush(context.Context, fs.FileHandle) syscall.Errno { return 0 }

func (f *file) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	out.Mode, out.Size = 0o644, uint64(len(f.data))
	return 0
}

func (f *file) Setattr(ctx context.Context, h fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	if size, ok := in.GetSize(); ok {
		f.s.mu.Lock()
		e := f.truncate(int64(size))
		f.s.mu.Unlock()
		if e != 0 {
			return e
		}
	}
	return f.Getattr(ctx, h, out)
}
