package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"slices"
)

// This file reads bbolt's pages by itself, with every length and number checked
// before it is used. bbolt trusts its file: a damaged page makes it read outside
// its mapping, allocate without bound or recurse for ever, and its own Check does
// so on a goroutine on which no fault can be caught. So damage that would do that
// is looked for before bbolt sees the file.
//
// The format is that of go.etcd.io/bbolt/internal/common (version 2), in the
// machine's byte order:
//
//	page    id 8 | flags 2 | count 2 | overflow 4 | …
//	meta    magic 4 | version 4 | page size 4 | flags 4 | root bucket 16 | freelist 8 | pages 8 | tx 8 | FNV-1a 8
//	branch  count × (pos 4 | key size 4 | page 8), keys
//	leaf    count × (flags 4 | pos 4 | key size 4 | value size 4), keys and values
//	bucket  root page 8 (0: a leaf page follows inline) | sequence 8
const (
	pageHeader  = 16
	metaLen     = 64
	elementLen  = 16
	bucketLen   = 16
	boltMagic   = 0xED0CDAED
	boltVersion = 2

	pageBranch   = 0x01
	pageLeaf     = 0x02
	pageMeta     = 0x04
	pageFreelist = 0x10

	noFreelist = 1<<64 - 1
	// maxDepth bounds a tree: every level multiplies the keys by at least 2.
	maxDepth = 64
)

var native = binary.NativeEndian

// boltMeta is one of the two meta pages.
type boltMeta struct {
	pageSize int64
	root     uint64
	freelist uint64
	pages    uint64 // one more than the highest page in use
	tx       uint64
}

// pageFile reads pages of one state of the file.
type pageFile struct {
	r     io.ReaderAt
	size  int64
	meta  boltMeta
	ahead func(at, n int64) // says that these bytes will be read soon; nil = nobody is told
}

// page is one page with its overflow.
type page struct {
	id       uint64
	flags    uint16
	count    int
	overflow uint64
	data     []byte // from its header on
}

// element is an entry of a branch (child) or leaf page (value, bucket).
type element struct {
	key    []byte
	value  []byte
	child  uint64
	bucket bool
}

func decodeMeta(b []byte) (boltMeta, error) {
	if len(b) < pageHeader+metaLen {
		return boltMeta{}, errors.New("it is cut off")
	}
	m := b[pageHeader:]
	if native.Uint32(m) != boltMagic {
		return boltMeta{}, errors.New("it has no magic number")
	}
	if v := native.Uint32(m[4:]); v != boltVersion {
		return boltMeta{}, fmt.Errorf("it has format version %d, not %d", v, boltVersion)
	}
	sum := fnv.New64a()
	sum.Write(m[:metaLen-8])
	if sum.Sum64() != native.Uint64(m[metaLen-8:]) {
		return boltMeta{}, errors.New("its checksum does not match")
	}
	size := native.Uint32(m[8:])
	if size < 1024 || size > 1<<24 || size&(size-1) != 0 {
		return boltMeta{}, fmt.Errorf("it has page size %d", size)
	}
	return boltMeta{
		pageSize: int64(size),
		root:     native.Uint64(m[16:]),
		freelist: native.Uint64(m[32:]),
		pages:    native.Uint64(m[40:]),
		tx:       native.Uint64(m[48:]),
	}, nil
}

// readMetas returns the valid meta pages, and what is wrong with the others.
func readMetas(r io.ReaderAt, size int64) (good []boltMeta, bad []error) {
	b := make([]byte, pageHeader+metaLen)
	read := func(at int64) (boltMeta, error) {
		n, err := r.ReadAt(b, at)
		if err != nil && err != io.EOF {
			return boltMeta{}, err
		}
		return decodeMeta(b[:n])
	}
	first, err := read(0)
	if err != nil {
		bad = append(bad, fmt.Errorf("meta page 0: %w", err))
		// The page size is in the page that cannot be read: try all.
		for at := int64(1024); at <= 1<<24 && at < size; at *= 2 {
			if second, err := read(at); err == nil && second.pageSize == at {
				return append(good, second), bad
			}
		}
		return nil, append(bad, errors.New("meta page 1: it was not found"))
	}
	good = append(good, first)
	second, err := read(first.pageSize)
	if err == nil && second.pageSize != first.pageSize {
		err = fmt.Errorf("it has page size %d, meta page 0 has %d", second.pageSize, first.pageSize)
	}
	if err != nil {
		return good, append(bad, fmt.Errorf("meta page 1: %w", err))
	}
	return append(good, second), bad
}

// openPages returns the newest state of the file r of size bytes. Damage of one
// meta page is in bad and no error: a power cut can leave it, and bbolt then goes
// by the other.
func openPages(r io.ReaderAt, size int64) (f pageFile, bad []error, err error) {
	if size == 0 {
		return f, nil, errors.New("the file is empty")
	}
	good, bad := readMetas(r, size)
	if len(good) == 0 {
		return f, bad, fmt.Errorf("no meta page is valid: %w", errors.Join(bad...))
	}
	m := good[0]
	if len(good) == 2 && good[1].tx > m.tx {
		m = good[1]
	}
	f = pageFile{r: r, size: size, meta: m}
	if file, ok := r.(*os.File); ok {
		f.ahead = func(at, n int64) { readAhead(file, at, n) }
	}
	return f, bad, f.checkMeta()
}

func (f *pageFile) checkMeta() error {
	m := f.meta
	if m.pages < 4 || m.pages > uint64(f.size/m.pageSize) {
		return fmt.Errorf("the file is cut off: it has %d bytes, and its %d pages of %d need %d",
			f.size, m.pages, m.pageSize, m.pages*uint64(m.pageSize))
	}
	if err := f.inside(m.root); err != nil {
		return fmt.Errorf("root bucket: %w", err)
	}
	// Without a list bbolt walks the whole file, on a goroutine of its own. The
	// list is always written here.
	if m.freelist == noFreelist {
		return errors.New("the list of free pages is missing")
	}
	if err := f.inside(m.freelist); err != nil {
		return fmt.Errorf("list of free pages: %w", err)
	}
	return nil
}

func (f *pageFile) inside(id uint64) error {
	if id < 2 || id >= f.meta.pages {
		return fmt.Errorf("page %d is outside of the file's %d pages", id, f.meta.pages)
	}
	return nil
}

// page reads a page and checks its header. It reads into room, if that is large enough.
func (f *pageFile) page(id uint64, room []byte) (page, error) {
	if err := f.inside(id); err != nil {
		return page{}, err
	}
	at := int64(id) * f.meta.pageSize
	if int64(cap(room)) < f.meta.pageSize {
		room = make([]byte, f.meta.pageSize)
	}
	data := room[:f.meta.pageSize]
	if _, err := f.r.ReadAt(data, at); err != nil {
		return page{}, fmt.Errorf("page %d: %w", id, err)
	}
	p := parseHeader(data)
	if p.id != id {
		return page{}, fmt.Errorf("page %d says that it is page %d", id, p.id)
	}
	if p.overflow > 0 {
		if p.overflow >= f.meta.pages-id {
			return page{}, fmt.Errorf("page %d reaches beyond the end, by its overflow of %d", id, p.overflow)
		}
		p.data = make([]byte, int64(p.overflow+1)*f.meta.pageSize)
		if _, err := f.r.ReadAt(p.data, at); err != nil {
			return page{}, fmt.Errorf("page %d: %w", id, err)
		}
	}
	return p, nil
}

func parseHeader(data []byte) page {
	return page{
		id:       native.Uint64(data),
		flags:    native.Uint16(data[8:]),
		count:    int(native.Uint16(data[10:])),
		overflow: uint64(native.Uint32(data[12:])),
		data:     data,
	}
}

// willRead says that the pages will be read soon, one after the other. The disk then
// reads many at a time.
func (f *pageFile) willRead(children []element) {
	if f.ahead == nil {
		return
	}
	for _, e := range children {
		if f.inside(e.child) == nil {
			f.ahead(int64(e.child)*f.meta.pageSize, f.meta.pageSize)
		}
	}
}

// elements returns the entries of a branch or leaf page, which are in order, in room,
// if that is large enough.
func (p *page) elements(room []element) ([]element, error) {
	if p.flags != pageBranch && p.flags != pageLeaf {
		return nil, fmt.Errorf("page %d is of type %#x where a branch or leaf belongs", p.id, p.flags)
	}
	if pageHeader+p.count*elementLen > len(p.data) {
		return nil, fmt.Errorf("page %d has %d entries, more than it has room for", p.id, p.count)
	}
	list := slices.Grow(room[:0], p.count)[:p.count]
	for i := range list {
		start := pageHeader + i*elementLen
		b := p.data[start:]
		var e element
		var pos, keySize, valueSize uint64
		if p.flags == pageBranch {
			pos, keySize = uint64(native.Uint32(b)), uint64(native.Uint32(b[4:]))
			e.child = native.Uint64(b[8:])
		} else {
			flags := native.Uint32(b)
			if flags > 1 {
				return nil, fmt.Errorf("page %d, entry %d: it has flags %#x", p.id, i, flags)
			}
			e.bucket = flags == 1
			pos, keySize, valueSize = uint64(native.Uint32(b[4:])), uint64(native.Uint32(b[8:])), uint64(native.Uint32(b[12:]))
		}
		if pos+keySize+valueSize > uint64(len(b)) {
			return nil, fmt.Errorf("page %d, entry %d: it reaches beyond the page", p.id, i)
		}
		e.key, e.value = b[pos:pos+keySize:pos+keySize], b[pos+keySize:pos+keySize+valueSize]
		if len(e.key) == 0 && (p.flags == pageLeaf || i > 0) {
			return nil, fmt.Errorf("page %d, entry %d: it has no key", p.id, i)
		}
		if i > 0 && bytes.Compare(list[i-1].key, e.key) >= 0 {
			return nil, fmt.Errorf("page %d, entry %d: it is out of order", p.id, i)
		}
		list[i] = e
	}
	if p.flags == pageBranch && p.count == 0 {
		return nil, fmt.Errorf("page %d is a branch without children", p.id)
	}
	return list, nil
}

// free returns the pages on the list of free pages.
func (f *pageFile) free() (p page, ids []uint64, err error) {
	if p, err = f.page(f.meta.freelist, nil); err != nil {
		return p, nil, err
	}
	if p.flags != pageFreelist {
		return p, nil, fmt.Errorf("page %d is of type %#x where the list of free pages belongs", p.id, p.flags)
	}
	list, n := p.data[pageHeader:], uint64(p.count)
	if n == 0xFFFF {
		n, list = native.Uint64(list), list[8:]
	}
	if n > uint64(len(list)/8) {
		return p, nil, fmt.Errorf("page %d lists %d free pages, more than it has room for", p.id, n)
	}
	ids = make([]uint64, n)
	for i := range ids {
		ids[i] = native.Uint64(list[i*8:])
		if err := f.inside(ids[i]); err != nil {
			return p, nil, fmt.Errorf("list of free pages: %w", err)
		}
		if i > 0 && ids[i] <= ids[i-1] {
			return p, nil, fmt.Errorf("list of free pages: page %d is out of order", ids[i])
		}
	}
	return p, ids, nil
}
