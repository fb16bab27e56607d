package bolt

import "sync/atomic"

type counts struct {
	commits, functions, bytes atomic.Uint64
	logged, moves             atomic.Uint64
}

// Stats are counts since Open, and sizes now.
type Stats struct {
	Commits      uint64 // each of them one sync, or two if it was too large for the log
	Functions    uint64 // functions stored; divided by Commits, how many share one
	Bytes        uint64 // keys and values that functions wrote
	LogBytes     uint64 // written to the log
	Checkpoints  uint64 // transactions that moved the log into mailbox.db, two syncs each
	FreePages    int    // pages of the file that the next commits can use
	PendingPages int    // pages that become free when the Views that see them end
	PageSize     int    // bytes
	FileSize     int64  // bytes of mailbox.db
}

// Stats returns numbers for metrics. It reads no page of the store.
func (db *DB) Stats() Stats {
	s := Stats{
		Commits:   db.stats.commits.Load(),
		Functions: db.stats.functions.Load(),
		Bytes:     db.stats.bytes.Load(),

		LogBytes:    db.stats.logged.Load(),
		Checkpoints: db.stats.moves.Load(),
	}
	if db.life.enter() != nil {
		return s
	}
	defer db.life.leave()
	b := db.bolt.Stats()
	s.FreePages, s.PendingPages = b.FreePageN, b.PendingPageN
	s.PageSize = db.bolt.Info().PageSize
	s.FileSize = db.size()
	return s
}
