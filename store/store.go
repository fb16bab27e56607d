package store

import (
	"context"
	"errors"
)

// The bounds of one transaction function, so that an engine for several
// machines can carry it in one request. Longer work is cut into steps.
const (
	// MaxOps bounds the Puts, Deletes, Adds, Mints and Appends of one function.
	MaxOps = 96
	// MaxBytes bounds the keys and values that one function writes. It leaves
	// room for one message body of the largest size (1 MiB) and its records.
	MaxBytes = 1<<20 + 128<<10
	// MaxKey bounds one key or counter name, in bytes. A key is never empty.
	MaxKey = 4096
)

// A Reader reads one consistent state of the store. Slices that it returns
// are valid until the function that was handed the Reader returns, and must
// not be changed.
type Reader interface {
	// Get returns the value of key, nil if there is none.
	Get(key []byte) []byte
	// Sum returns the value of a counter (see Tx.Add), 0 if there is none. It is
	// a hint in that an engine need not guard the transaction by it.
	Sum(counter []byte) int64
	// Scan calls fn for each key in [from, to) in order until fn returns
	// false. A nil to means the end of from's space (its first byte).
	Scan(from, to []byte, fn func(key, value []byte) bool)
	// ScanBack is Scan from the last key below to down to from.
	ScanBack(from, to []byte, fn func(key, value []byte) bool)
	// Sums calls fn for each counter whose name starts with prefix, in order.
	Sums(prefix []byte, fn func(counter []byte, value int64) bool)
}

// A Tx is a Reader that also writes. It sees its own writes. Errors of the
// engine are sticky: they make Update fail whatever the function returned.
//
// The first byte of a key names its space; an engine may keep spaces apart.
// Keys given to a Tx are the engine's until Update returns. Values are for good: they
// are not changed any more, and are no slices that a Reader returned.
type Tx interface {
	Reader
	Put(key, value []byte)
	Delete(key []byte)
	// Add adds delta to a counter. Additions commute: transactions that add to
	// one counter do not conflict, and the engine folds them once a batch.
	Add(counter []byte, delta int64)
	// Mint returns a number greater than every number minted before for
	// resource, below 2^53, starting at 1: a fencing token. On this engine one
	// counter serves all resources. It is known for sure only once Update
	// has returned nil. Two calls in one transaction return different numbers.
	Mint(resource string) uint64
	// Next returns the next number of the global send sequence: greater than
	// all before, below 2^53, starting at 1, never used again.
	Next() uint64
	// Append stores value under space and a number that is greater than all
	// before in that space, and returns the number. Key: space, 8 bytes
	// big-endian.
	Append(space byte, value []byte) uint64
	// Asynchronous says that Update may return before what this function wrote is
	// durable, once the end of the process can take it no more. Until it is durable, a
	// few milliseconds later at most, a crash of the machine may take it, with all that
	// came after it; nothing of which an Update has said that it is durable can rest on
	// it. What Mint and Next have given is not given again. An engine need not make use
	// of it.
	Asynchronous()
}

// A Store is a transactional key-value store with one writer process.
type Store interface {
	// View runs fn over one consistent state. It may run beside Updates.
	View(ctx context.Context, fn func(Reader) error) error

	// Update runs fn in a transaction and returns once its writes are durable (but see
	// Tx.Asynchronous).
	//
	// fn may be run more than once and has no side effects; it must not keep
	// the Tx. If fn returns an error, nothing that it wrote is stored, and
	// Update returns that error. A refusal of category disk_full means that
	// nothing was stored and the store goes on. A refusal of category
	// outcome_unknown means that the writes may or may not be stored: the
	// store fails every later call the same way, Failed is closed, and the
	// caller stops and lets recovery decide.
	//
	// ctx only bounds the wait before fn is first run, and says whether the write is
	// essential (see Essential).
	Update(ctx context.Context, fn func(Tx) error) error

	// Failed is closed when a write has had an unknown outcome.
	Failed() <-chan struct{}

	// Close waits for running transactions and releases the store. It is an
	// error to use the store afterwards.
	Close() error
}

var (
	// ErrTooLarge is the sticky error of a function that writes more than
	// MaxOps or MaxBytes allow. Nothing of it is stored; cut the work into steps.
	ErrTooLarge = errors.New("transaction function writes more than one may")
	// ErrBadKey is the sticky error of a function that used an empty key, one
	// longer than MaxKey, or a scan without a start. Nothing of it is stored.
	ErrBadKey = errors.New("key is empty or too long")
)
