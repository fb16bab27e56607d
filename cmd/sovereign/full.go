package main

import (
	"context"
	"sync/atomic"
	"time"
)

// calm is how long a store that was full must have had room for what comes before that
// is told. On a disk that is nearly full small writes find room where large ones do not.
const calm = 30 * time.Second

// tellFull calls tell when a store begins to refuse updates for want of room, and when it
// has accepted all for some time, until ctx ends. full is what is so now, and a channel
// that is closed when that changes. told is whether the last that was told, by this program
// or by the one whose place it has taken, is that it is full.
func tellFull(ctx context.Context, told *atomic.Bool, full func() (bool, <-chan struct{}), tell func(full bool)) error {
	for {
		now, changed := full()
		var calmed <-chan time.Time
		switch {
		case now && !told.Load():
			told.Store(true)
			tell(true)
		case !now && told.Load():
			calmed = time.After(calm)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		case <-calmed:
			told.Store(false)
			tell(false)
		}
	}
}
