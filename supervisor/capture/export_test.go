package capture

import "time"

func init() { indexGrace = 5 * time.Second }

// Patient has the log's children wait for the disk for d instead of MaxBlock, and a line
// for its end as long: what is to be kept whole is kept whole on a machine that is busy
// with other things, too. Call it before the first Pipe.
func (l *Log) Patient(d time.Duration) {
	l.patience = d
	if l.queue != nil {
		l.queue.block = d
	}
}
