package bolt

import (
	"bytes"
	"context"
	"fmt"
)

// walker checks the trees of one state of the file. It visits each page at most
// once, so that it ends whatever the pages say.
type walker struct {
	pageFile
	ctx    context.Context
	full   bool             // visit leaves too, and report all; else stop at the first problem
	report func(error) bool // false: stop
	visit  func(space []byte, e element)

	seen []uint64 // bitmap of the pages that a tree or list uses
	free map[uint64]bool
	stop bool
}

func (w *walker) problem(format string, args ...any) {
	if !w.stop && !w.report(fmt.Errorf(format, args...)) {
		w.stop = true
	}
}

// claim marks a page and its overflow as used. A page is used once.
func (w *walker) claim(p page) bool {
	for id := p.id; id <= p.id+p.overflow; id++ {
		if w.seen[id/64]&(1<<(id%64)) != 0 {
			w.problem("page %d is used twice", id)
			return false
		}
		w.seen[id/64] |= 1 << (id % 64)
		if w.free[id] {
			w.problem("page %d is used and on the list of free pages", id)
		}
	}
	return true
}

// run checks the whole state.
func (w *walker) run() {
	w.seen = make([]uint64, w.meta.pages/64+1)
	w.claim(page{id: 0, overflow: 1})
	p, ids, err := w.pageFile.free()
	if err != nil {
		w.problem("%w", err)
	} else {
		w.free = make(map[uint64]bool)
		for _, id := range ids {
			w.free[id] = true
		}
		w.claim(p)
	}
	if w.stop {
		return
	}
	w.bucket(nil, w.meta.root, true)
	if !w.full || w.stop || w.free == nil {
		return
	}
	for id := uint64(2); id < w.meta.pages; id++ {
		if w.seen[id/64]&(1<<(id%64)) == 0 && !w.free[id] {
			w.problem("page %d is neither used nor free", id)
		}
	}
}

// bucket checks the tree of a bucket. The root bucket holds the others.
func (w *walker) bucket(name []byte, root uint64, top bool) {
	t := tree{walker: w, name: name, top: top, leafDepth: -1}
	t.page(root, 0, nil, nil)
}

type tree struct {
	*walker
	name      []byte
	top       bool
	leafDepth int // of the first leaf; -1 before
	levels    []level
}

// A level is the room for one page at a depth, and its entries. Those of the page at
// that depth before are not looked at any more, unless leaves are visited.
type level struct {
	data []byte
	list []element
}

// level returns the room at depth.
func (t *tree) level(depth int) *level {
	if t.full {
		return new(level)
	}
	for len(t.levels) <= depth {
		t.levels = append(t.levels, level{})
	}
	return &t.levels[depth]
}

// page checks the page id and all below it, whose keys are in [lo, hi). nil
// bounds nothing.
func (t *tree) page(id uint64, depth int, lo, hi []byte) {
	if t.stop {
		return
	}
	if t.ctx.Err() != nil {
		t.stop = true
		return
	}
	if depth > maxDepth {
		t.problem("page %d lies more than %d levels deep", id, maxDepth)
		return
	}
	room := t.level(depth)
	p, err := t.pageFile.page(id, room.data)
	if err != nil {
		t.problem("%w", err)
		return
	}
	if !t.claim(p) {
		return
	}
	list, err := p.elements(room.list)
	if err != nil {
		t.problem("%w", err)
		return
	}
	room.data, room.list = p.data, list // room is another one by the time that a child is looked at
	for i, e := range list {
		if lo != nil && bytes.Compare(e.key, lo) < 0 || hi != nil && bytes.Compare(e.key, hi) >= 0 {
			t.problem("page %d, entry %d: it lies outside of its branch", p.id, i)
			return
		}
	}
	if p.flags == pageLeaf {
		if t.leafDepth < 0 {
			t.leafDepth = depth
		}
		t.leaf(list)
		return
	}
	told := false
	for i, e := range list {
		// All leaves lie at one depth. Where only branches are asked for, those
		// below the first leaf's level are leaves and need not be read.
		if !t.full && !t.top && t.leafDepth == depth+1 {
			if err := t.inside(e.child); err != nil {
				t.problem("page %d: %w", p.id, err)
			} else {
				t.claim(page{id: e.child})
			}
			continue
		}
		if !told && !t.full && t.leafDepth >= 0 {
			t.willRead(list[i:]) // branches, or the leaves would be at this depth
			told = true
		}
		next := hi
		if i+1 < len(list) {
			next = list[i+1].key
		}
		t.page(e.child, depth+1, e.key, next)
	}
}

func (t *tree) leaf(list []element) {
	for _, e := range list {
		switch {
		case !t.top && e.bucket:
			t.problem("bucket %q holds a bucket", t.name)
		case t.top && !e.bucket:
			t.problem("a value lies among the buckets, under %q", e.key)
		case t.top:
			t.inner(e)
		case t.visit != nil:
			t.visit(t.name, e)
		}
	}
}

// inner checks the bucket that e of the root bucket holds.
func (t *tree) inner(e element) {
	if len(e.value) < bucketLen {
		t.problem("bucket %q is cut off", e.key)
		return
	}
	if root := native.Uint64(e.value); root != 0 {
		t.bucket(e.key, root, false)
		return
	}
	inline := e.value[bucketLen:]
	if len(inline) < pageHeader {
		t.problem("bucket %q is cut off", e.key)
		return
	}
	p := parseHeader(inline)
	list, err := p.elements(nil)
	if err != nil || p.flags != pageLeaf {
		t.problem("bucket %q: its inline page is damaged: %v", e.key, err)
		return
	}
	in := tree{walker: t.walker, name: e.key}
	in.leaf(list)
}
