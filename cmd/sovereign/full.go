package main

import (
	"context"
	"time"
)

// calm is how long a store that was full must have had room for what comes before that
// is told. On a disk that is nearly full small writes find room where large ones do not.
const calm = 30 * time.Second

// tellFull calls tell when a store begins to refuse updates for want of room, and when it
// has accepted all for some time, until ctx ends. full is what is so now, and a channel
// that is closed when that changes.
func tellFull(ctx context.Context, full func() (bool, <-chan struct{}), tell func(full bool)) error {
	told := false
	for {
		now, changed := full()
		var calmed <-chan time.Time
		switch {
		case now && !told:
			told = true
			tell(true)
		case !now && told:
			calmed = time.After(calm)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		case <-calmed:
			told = false
			tell(false)
		}
	}
}
