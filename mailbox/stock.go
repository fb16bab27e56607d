package mailbox

// A stock is memory that the keys and small records of one transaction are cut from: one
// object of the heap instead of one for each. What was cut from it is not changed any
// more, and the next piece lies behind it. Its zero value is ready; a nil one makes an
// object for each.
type stock struct{ rest []byte }

// stockSize is what a send or a claim needs; see stockEnd.
const stockSize = 160

// stockEnd is what the end of an attempt needs: receipt, event, record, and their keys.
const stockEnd = 448

// reserve makes room for size bytes that are cut next.
func (s *stock) reserve(size int) {
	if cap(s.rest) < size {
		s.rest = make([]byte, 0, max(size, stockSize))
	}
}

// open returns an empty slice that size bytes can be appended to, for close.
func (s *stock) open(size int) []byte {
	if s == nil {
		return make([]byte, 0, size)
	}
	s.reserve(size)
	return s.rest
}

// close takes what was appended since open out of the stock, and returns it.
func (s *stock) close(b []byte) []byte {
	if s == nil || cap(b) != cap(s.rest) { // there were more than size bytes, and it lies elsewhere
		return b
	}
	s.rest = b[len(b):]
	return b[:len(b):len(b)]
}
