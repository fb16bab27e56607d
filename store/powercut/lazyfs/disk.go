package lazyfs

import (
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// Kind says what an Op did.
type Kind uint8

const (
	Note     Kind = iota // nothing; Name is what a program had to say
	Create               // Name in the folder Node is the new file Child
	Folder               // Name in the folder Node is the new folder Child
	Remove               // Name in the folder Node is gone
	Rename               // Name in the folder Node is called To, whatever To was
	Write                // Data stands in the file Node at Off
	Truncate             // the file Node is Off long
	Sync                 // the file or folder Node is durable
	Lose                 // a sync of the file Node failed: what was not durable never will be
)

// Root is the number of the topmost folder.
const Root = 1

// An Op is one operation that a program asked for and that succeeded, but for Lose.
type Op struct {
	Kind     Kind
	Node     uint64
	Child    uint64 // Rename: what Name is
	Name, To string
	Off      int64
	Data     []byte
}

// A Disk is what a log of operations leaves on a disk.
type Disk struct{ nodes map[uint64]*node }

type node struct {
	folder  bool
	data    []byte            // durable
	entries map[string]uint64 // durable
	pending []Op              // in order
}

// NewDisk returns a disk that holds image, all durable. The numbers of its nodes
// are given in the order of their paths.
func NewDisk(image Image) *Disk {
	d := &Disk{nodes: map[uint64]*node{Root: {folder: true, entries: map[string]uint64{}}}}
	ids := map[string]uint64{".": Root}
	for i, name := range slices.Sorted(maps.Keys(image)) {
		id := uint64(Root + 1 + i)
		ids[name] = id
		f := image[name]
		n := &node{folder: f.Folder, data: slices.Clone(f.Data)}
		if n.folder {
			n.entries = map[string]uint64{}
		}
		d.nodes[id] = n
		d.nodes[ids[path.Dir(name)]].entries[path.Base(name)] = id
	}
	return d
}

// Apply carries out one operation.
func (d *Disk) Apply(op Op) {
	switch op.Kind {
	case Note:
		return
	case Create:
		d.nodes[op.Child] = &node{}
	case Folder:
		d.nodes[op.Child] = &node{folder: true, entries: map[string]uint64{}}
	}
	n := d.nodes[op.Node]
	switch op.Kind {
	case Sync:
		for _, p := range n.pending {
			n.settle(p)
		}
		n.pending = nil
	case Lose:
		n.pending = nil
	default:
		n.pending = append(n.pending, op)
	}
}

// settle makes one pending operation durable.
func (n *node) settle(op Op) {
	switch op.Kind {
	case Create, Folder:
		n.entries[op.Name] = op.Child
	case Remove:
		delete(n.entries, op.Name)
	case Rename:
		delete(n.entries, op.Name)
		n.entries[op.To] = op.Child
	case Write:
		n.data = write(n.data, op.Off, op.Data)
	case Truncate:
		n.data = resize(n.data, op.Off)
	}
}

func write(b []byte, off int64, data []byte) []byte {
	if end := off + int64(len(data)); int64(len(b)) < end {
		b = resize(b, end)
	}
	copy(b[off:], data)
	return b
}

func resize(b []byte, size int64) []byte {
	if size <= int64(len(b)) {
		return b[:size:size]
	}
	return append(b, make([]byte, size-int64(len(b)))...)
}

// durable returns the content of a file that is on the disk for good.
func (d *Disk) durable(id uint64) []byte { return d.nodes[id].data }

// Keep decides for each thing that was not synced, in order, whether it reached
// the disk all the same: a change of a name, a change of a length, a sector.
type Keep func() bool

// None keeps nothing.
func None() bool { return false }

// All keeps everything.
func All() bool { return true }

// Some keeps a half, the same one for the same seed.
func Some(seed uint64) Keep {
	r := rand.New(rand.NewPCG(seed, 512))
	return func() bool { return r.Uint64()&1 == 1 }
}

const sector = 512

// Cut returns what is on the disk if the power goes now. The disk stays as it is.
func (d *Disk) Cut(keep Keep) Image {
	after := make(map[uint64]*node, len(d.nodes))
	for _, id := range slices.Sorted(maps.Keys(d.nodes)) {
		n := d.nodes[id]
		left := &node{folder: n.folder, data: slices.Clone(n.data), entries: maps.Clone(n.entries)}
		for _, op := range n.pending {
			if op.Kind != Write {
				if keep() {
					left.settle(op)
				}
				continue
			}
			for data, off := op.Data, op.Off; len(data) > 0; {
				size := min(int64(len(data)), sector-off%sector)
				if keep() {
					left.data = write(left.data, off, data[:size])
				}
				data, off = data[size:], off+size
			}
		}
		after[id] = left
	}
	image := Image{}
	var walk func(id uint64, at string)
	walk = func(id uint64, at string) {
		for name, child := range after[id].entries {
			n, p := after[child], path.Join(at, name)
			image[p] = File{Folder: n.folder, Data: n.data}
			if n.folder {
				walk(child, p)
			}
		}
	}
	walk(Root, "")
	return image
}

// An Image is the content of a disk by path.
type Image map[string]File

// A File is one file or folder of an Image.
type File struct {
	Folder bool
	Data   []byte
}

// Write puts the image into the folder dir.
func (image Image) Write(dir string) error {
	for _, name := range slices.Sorted(maps.Keys(image)) {
		f, p := image[name], filepath.Join(dir, filepath.FromSlash(name))
		if f.Folder {
			if err := os.Mkdir(p, 0o755); err != nil {
				return err
			}
		} else if err := writeSparse(p, f.Data); err != nil {
			return err
		}
	}
	return nil
}

// writeSparse writes a file and leaves out what is zero anyway.
func writeSparse(name string, data []byte) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	if err := f.Truncate(int64(len(data))); err != nil {
		return err
	}
	const block = 4096
	for off := 0; off < len(data); off += block {
		b := data[off:min(off+block, len(data))]
		if slices.ContainsFunc(b, func(c byte) bool { return c != 0 }) {
			if _, err := f.WriteAt(b, int64(off)); err != nil {
				return err
			}
		}
	}
	return nil
}
