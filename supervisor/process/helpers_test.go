package process_test

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
)

func readAll(r io.Reader) (string, error) {
	b, err := io.ReadAll(r)
	return string(b), err
}

// field is the value of a line "name: value" of /proc/PID/status.
func field(status, name string) string {
	_, rest, _ := strings.Cut("\n"+status, "\n"+name+":")
	value, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(value)
}

func goroutines() int { return runtime.NumGoroutine() }

// children are the direct children of this program, zombies too.
func children() []string {
	tasks, _ := os.ReadDir("/proc/self/task")
	var out []string
	for _, t := range tasks {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/self/task/%s/children", t.Name()))
		out = append(out, strings.Fields(string(b))...)
	}
	return out
}
