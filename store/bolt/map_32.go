//go:build 386 || arm || mips || mipsle

package bolt

// mapSize is 0 where address space is too short to map more than the file. An
// Update that grows the file beyond its mapping waits for all Views.
const mapSize = 0
