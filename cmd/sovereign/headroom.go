package main

// headroomSize is how much garbage more the heap may hold before it is collected,
// in bytes.
const headroomSize = 6 << 20

// headroom is memory that is never touched and so occupies none, but that the
// garbage collector counts. It runs when the heap has doubled since the last time,
// at 4 MiB at the least. A busy supervisor's heap is 2 MiB: it was collected every
// 160 messages, which with the stacks of some hundred connections to look through
// was a tenth of its CPU. With headroom it is every 500, for 6 MiB more while it is
// busy. A heap that is large in itself grows by no more than that either; with a
// greater GOGC it would grow in proportion.
//
// It is to be made before anything else, of memory that is fresh from the operating
// system: what was used before would be cleared, and then it is not untouched.
func headroom() []byte { return make([]byte, headroomSize) }
