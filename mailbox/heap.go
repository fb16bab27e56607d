package mailbox

// A heap is a binary min-heap of values, the first at index 0. The standard
// one would allocate for every value that it is given.
type heap[T interface{ before(T) bool }] []T

func (h *heap[T]) push(v T) {
	s := append(*h, v)
	i := len(s) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !v.before(s[parent]) {
			break
		}
		s[i] = s[parent]
		i = parent
	}
	s[i] = v
	*h = s
}

func (h *heap[T]) pop() T {
	s := *h
	first, last := s[0], len(s)-1
	v := s[last]
	var zero T
	s[last] = zero
	s = s[:last]
	for i := 0; last > 0; {
		child := 2*i + 1
		if child+1 < last && s[child+1].before(s[child]) {
			child++
		}
		if child >= last || !s[child].before(v) {
			s[i] = v
			break
		}
		s[i] = s[child]
		i = child
	}
	if last == 0 {
		s = s[:0]
	}
	// What a burst took is given back once it is over.
	if cap(s) > 4096 && len(s) < cap(s)/4 {
		s = append(make([]T, 0, len(s)*2), s...)
	}
	*h = s
	return first
}
