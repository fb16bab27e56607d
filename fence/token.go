package fence

import "strconv"

// A Token fences one grant: a lease or a claim. It is greater than every token
// minted before for its resource, is never minted again (P7), and stays below
// 2^53, so that a JSON number carries it exactly. The upper 20 bits are the
// store's epoch, the lower 33 a counter. Zero is no token and fences nothing:
// it is never current.
type Token uint64

func (t Token) String() string { return strconv.FormatUint(uint64(t), 10) }

// Epoch is the store epoch in which t was minted.
func (t Token) Epoch() uint32 { return uint32(t >> 33) }

// An Instant is a time on the lease clock, in nanoseconds. The lease clock does
// not follow the wall clock and does not run backwards, not even over a
// restart (P9); instants of different stores cannot be compared. Zero is no
// instant.
type Instant int64
