package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// What Linux tells of a process in /proc. Where there is no /proc it is all 0.

// cpuTime is the CPU time that the process's threads have used, in ns; 0 for pid 0.
func cpuTime(pid int) time.Duration {
	stats, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	var sum time.Duration
	for _, name := range stats {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // the thread has ended
		}
		ran, _, _ := strings.Cut(string(text), " ")
		ns, _ := strconv.ParseInt(ran, 10, 64)
		sum += time.Duration(ns)
	}
	return sum
}

// A footprint is what a process occupies.
type footprint struct {
	rss, pss, anonymous float64 // KiB
	threads, files      float64
}

func footprintOf(pid int) footprint {
	dir := fmt.Sprintf("/proc/%d/", pid)
	rollup, status := fields(dir+"smaps_rollup"), fields(dir+"status")
	files, _ := os.ReadDir(dir + "fd")
	return footprint{rss: rollup["Rss"], pss: rollup["Pss"], anonymous: rollup["Pss_Anon"], threads: status["Threads"], files: float64(len(files))}
}

// fields reads lines of "Name: number unit".
func fields(name string) map[string]float64 {
	text, _ := os.ReadFile(name)
	out := map[string]float64{}
	for line := range bytes.Lines(text) {
		key, rest, _ := strings.Cut(string(line), ":")
		if words := strings.Fields(rest); len(words) > 0 {
			out[key], _ = strconv.ParseFloat(words[0], 64)
		}
	}
	return out
}
