package capture

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// indexGrace is how long bytes wait for the index to say whose they are. It is a variable
// for tests, which give a busy disk longer.
var indexGrace = 250 * time.Millisecond

// Follow is Last, and then every line as it is written, across rotation, until
// ctx ends, which is no error. dir must exist. Lines of replicas come as they are
// written, each slot's in order.
func Follow(ctx context.Context, dir string, q Query, emit func(Line) error) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	defer watcher.Close()
	if err := watcher.Add(dir); err != nil { // before the first look, to miss nothing
		return fmt.Errorf("watch %s: %w", dir, err)
	}
	readers, err := openReaders(dir, q)
	if err != nil {
		return err
	}
	defer func() { closeReaders(readers) }()
	if err := lastOf(readers, q.Lines, emit); err != nil {
		return err
	}
	for {
		var grace <-chan time.Time
		for _, r := range readers {
			r.patient = true
			if err := r.emitAll(emit); err != nil {
				return err
			}
			if !r.waiting.IsZero() {
				grace = time.After(indexGrace)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case e, ok := <-watcher.Events:
			if !ok {
				return nil
			}
			readers = withNewSlot(readers, dir, q, e)
		case <-watcher.Errors: // events were lost: look at everything
		case <-grace:
		}
	}
}

// emitAll emits all that r has now.
func (r *reader) emitAll(emit func(Line) error) error {
	for l := r.head(); l != nil; l = r.head() {
		if err := emit(*l); err != nil {
			return err
		}
	}
	return r.err
}

// withNewSlot adds a reader when the event is of a slot's first file.
func withNewSlot(readers []*reader, dir string, q Query, e fsnotify.Event) []*reader {
	slot, ok := slotOf(filepath.Base(e.Name), q.Actor)
	if !ok || q.Slot != 0 && q.Slot != slot {
		return readers
	}
	for _, r := range readers {
		if r.slot == slot {
			return readers
		}
	}
	return append(readers, &reader{path: Path(dir, q.Actor, slot), actor: q.Actor, slot: slot})
}
