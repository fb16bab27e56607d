package bolt

import (
	"math"
	"sync/atomic"
)

type counts struct {
	commits, functions, bytes atomic.Uint64
	logged, moves             atomic.Uint64
	times                     distribution // seconds
	sizes                     distribution // functions
}

// A Distribution is how many values were at most each of its bounds, and all.
type Distribution struct {
	Bounds []float64 // ascending
	Counts []uint64  // of values up to the bound of that place and above the one before; one more for what is above all
	Sum    float64
}

// A distribution counts values; who reads it names the same bounds as who counts.
type distribution struct {
	counts [13]atomic.Uint64
	sum    atomic.Uint64 // bits of a float64; one goroutine at a time adds
}

// The bounds, in seconds and in functions: from the fastest disk to one that hangs,
// and from a lone commit to more than any group had in measurements.
var (
	timeBounds = [12]float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .1, .5, 2.5, 10}
	sizeBounds = [12]float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048}
)

// count is called by one goroutine at a time.
func (d *distribution) count(v float64, bounds *[12]float64) {
	i := 0
	for i < len(bounds) && v > bounds[i] {
		i++
	}
	d.counts[i].Add(1)
	d.sum.Store(math.Float64bits(math.Float64frombits(d.sum.Load()) + v))
}

func (d *distribution) read(bounds *[12]float64) Distribution {
	out := Distribution{Bounds: bounds[:], Sum: math.Float64frombits(d.sum.Load())}
	for i := range d.counts {
		out.Counts = append(out.Counts, d.counts[i].Load())
	}
	return out
}

// Stats are counts since Open, and sizes now.
type Stats struct {
	Commits      uint64 // each one sync, none where all of it is asynchronous, more if it was too large for the log
	Functions    uint64 // functions stored; divided by Commits, how many share one
	Bytes        uint64 // keys and values that functions wrote
	LogBytes     uint64 // written to the log
	Checkpoints  uint64 // transactions that moved the log into mailbox.db, two syncs each
	FreePages    int    // pages of the file that the next commits can use
	PendingPages int    // pages that become free when the Views that see them end
	PageSize     int    // bytes
	FileSize     int64  // bytes of mailbox.db

	CommitTimes Distribution // seconds until a commit could be answered, without the wait for its turn
	CommitSizes Distribution // functions in a commit
}

// Stats returns numbers for metrics. It reads no page of the store.
func (db *DB) Stats() Stats {
	s := Stats{
		Commits:   db.stats.commits.Load(),
		Functions: db.stats.functions.Load(),
		Bytes:     db.stats.bytes.Load(),

		LogBytes:    db.stats.logged.Load(),
		Checkpoints: db.stats.moves.Load(),

		CommitTimes: db.stats.times.read(&timeBounds),
		CommitSizes: db.stats.sizes.read(&sizeBounds),
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
