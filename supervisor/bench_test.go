package supervisor_test

import (
	"testing"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/mailbox"
)

// BenchmarkTask is one message from its send to its receipt, with a child that does
// nothing, four at a time.
func BenchmarkTask(b *testing.B) {
	w := run(b, shell("t", config.Task, "", func(a *config.Actor) {
		a.Command, a.Replicas, a.Log.File = []string{"/bin/true"}, 4, false
	}))
	for b.Loop() {
		var ids []mailbox.ID
		for range 4 {
			ids = append(ids, w.send("t", ""))
		}
		for _, id := range ids {
			w.await(id)
		}
	}
}
