package bolt_test

import (
	"testing"

	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store/bolt"
)

// P7: a copy from before the last opening is told from what a crash leaves, by
// counting openings. Do not count in resume and this fails.
func TestOpen_RefusesACopyOfAnEarlierRun(t *testing.T) {
	dir, crashed := t.TempDir(), t.TempDir()
	db := open(t, dir, bolt.Options{})
	mintOne(t, db)
	closeStore(t, db)
	old := read(t, dir, bolt.DataFile)
	db = open(t, dir, bolt.Options{})
	mintOne(t, db)
	// The crash: the mark of a store in use, with the copy beside it.
	write(t, crashed, bolt.MarkFile, read(t, dir, bolt.MarkFile))
	write(t, crashed, bolt.DataFile, old)
	closeStore(t, db)
	if _, err := bolt.Open(crashed, bolt.Options{}); !refusal.Has(err, refusal.StoreRolledBack) {
		t.Errorf("got %v", err)
	}
}
