package bolt_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/sovereign-run/sovereign/store"
	"github.com/sovereign-run/sovereign/store/bolt"
)

// The writer's turn is waited for, no longer than asked, and writes nothing. Leave the
// turn out and the second call does not fail.
func TestAnswers(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir, bolt.Options{})
	file := filepath.Join(dir, bolt.DataFile)
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Answers(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after, err := os.ReadFile(file); err != nil || string(after) != string(before) {
		t.Errorf("the file has changed, %v", err)
	}

	hangs, release, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- db.Update(context.Background(), func(store.Tx) error {
			close(hangs)
			<-release
			return nil
		})
	}()
	<-hangs
	ctx, cancel := context.WithCancel(t.Context())
	asked := make(chan error, 1)
	go func() { asked <- db.Answers(ctx) }()
	cancel()
	if err := <-asked; err == nil {
		t.Error("a writer that hangs was taken for one that answers")
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := db.Answers(t.Context()); err != nil {
		t.Error(err)
	}
}
