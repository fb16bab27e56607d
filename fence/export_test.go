package fence

import "github.com/sovereign-run/sovereign/store"

var DecodeLease = decodeLease

func EncodeLease(l Lease) []byte { return l.encode() }

// Get returns the lease on record for slot, if there is one.
func (l *Leases) Get(r store.Reader, slot Slot) (Lease, bool, error) { return l.get(r, slot) }
