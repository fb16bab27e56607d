//go:build !(386 || arm || mips || mipsle)

package bolt

// mapSize is the address space that the file is mapped into from the start. It
// takes no memory. Beyond it an Update that grows the file waits for all Views.
const mapSize = 16 << 30
