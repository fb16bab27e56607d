//go:build race

package process_test

// raceEnabled: the race detector multiplies memory.
const raceEnabled = true
