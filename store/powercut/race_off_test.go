//go:build !race

package powercut_test

const raceEnabled = false
