package mailbox

// A heap is a binary min-heap of values, the first at index 0. The standard
// one would allocate for every value that it is given.
type heap[T any] struct {
	all    []T
	before func(a, b T) bool
	moved  func(v T, place int) // is told of each change of place, -1 = it is out; nil = nobody asks
}

func (h *heap[T]) push(v T) {
	h.all = append(h.all, v)
	h.up(len(h.all)-1, v)
}

// pop takes the first out.
func (h *heap[T]) pop() T { return h.remove(0) }

// remove takes the one at place i out.
func (h *heap[T]) remove(i int) T {
	out, last := h.all[i], len(h.all)-1
	v := h.all[last]
	var zero T
	h.all[last] = zero
	h.all = h.all[:last]
	if i < last {
		h.set(i, v)
	}
	// What a burst took is given back once it is over.
	if cap(h.all) > 4096 && len(h.all) < cap(h.all)/4 {
		h.all = append(make([]T, 0, len(h.all)*2), h.all...)
	}
	if h.moved != nil {
		h.moved(out, -1)
	}
	return out
}

// fix puts the one at place i where it belongs, after its order has changed.
func (h *heap[T]) fix(i int) { h.set(i, h.all[i]) }

// set puts v where it belongs, place i being free.
func (h *heap[T]) set(i int, v T) {
	if i > 0 && h.before(v, h.all[(i-1)/2]) {
		h.up(i, v)
		return
	}
	h.down(i, v)
}

// up puts v at place i or above.
func (h *heap[T]) up(i int, v T) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h.before(v, h.all[parent]) {
			break
		}
		h.put(i, h.all[parent])
		i = parent
	}
	h.put(i, v)
}

// down puts v at place i or below.
func (h *heap[T]) down(i int, v T) {
	for {
		child := 2*i + 1
		if child+1 < len(h.all) && h.before(h.all[child+1], h.all[child]) {
			child++
		}
		if child >= len(h.all) || !h.before(h.all[child], v) {
			break
		}
		h.put(i, h.all[child])
		i = child
	}
	h.put(i, v)
}

func (h *heap[T]) put(i int, v T) {
	h.all[i] = v
	if h.moved != nil {
		h.moved(v, i)
	}
}
