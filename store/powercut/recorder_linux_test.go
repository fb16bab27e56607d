package powercut_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"sync"

	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store"
)

// recorder is a store that lets one transaction through at a time, and says what
// the store holds before and after it.
type recorder struct {
	store.Store
	mu    sync.Mutex // guards all below, and the order of transactions
	free  bool
	blind bool     // it only passes on
	last  string   // what the store held after the last transaction
	sure  []string // what it may hold after a cut: after the last one that is durable, or after one of the asynchronous ones since
	given numbers  // the greatest that were given by a transaction that is stored
	wrong error

	note func(format string, args ...any)
}

// numbers are the greatest that a store has given.
type numbers struct{ Token, Sequence uint64 }

func (r *recorder) wrap(st store.Store) store.Store {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Store = st
	if r.note == nil {
		r.note = func(string, ...any) {}
	}
	if r.blind {
		return st
	}
	r.last = contentOf(st)
	r.sure = []string{r.last}
	r.note("open %s", r.last)
	return r
}

func (r *recorder) Update(ctx context.Context, fn func(store.Tx) error) error {
	r.mu.Lock()
	if r.free {
		r.mu.Unlock()
		return r.Store.Update(ctx, fn)
	}
	defer r.mu.Unlock()
	var given numbers
	asynchronous := false
	r.note("begin")
	err := r.Store.Update(ctx, func(tx store.Tx) error {
		given, asynchronous = r.given, false
		return fn(&minter{tx, &given, &asynchronous})
	})
	if err != nil {
		if !refusal.Has(err, refusal.OutcomeUnknown) {
			if now := contentOf(r.Store); now != r.last {
				r.wrong = fmt.Errorf("an update that failed has changed the store: %w", err)
			}
			r.stored("unsynced", r.last)
		}
		return err
	}
	now := contentOf(r.Store)
	r.given = given
	if asynchronous || now == r.last { // what changes nothing is not synced
		r.stored("unsynced", now)
	} else {
		r.stored("done", now)
	}
	return nil
}

// stored notes what the store holds now: "done" is durable, "unsynced" not yet.
func (r *recorder) stored(how, content string) {
	r.last = content
	if how == "done" {
		r.sure = nil
	}
	r.sure = append(r.sure, content)
	r.note("%s %s %d %d", how, content, r.given.Token, r.given.Sequence)
}

// loosen lets transactions run together, unobserved, until tighten.
func (r *recorder) loosen() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free = true
	r.note("loose")
}

func (r *recorder) tighten() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free = false
	if r.blind {
		return
	}
	r.stored("done", contentOf(r.Store))
}

// minter notes the numbers that are given, and whether the transaction is asynchronous.
type minter struct {
	store.Tx
	given        *numbers
	asynchronous *bool
}

func (m *minter) Asynchronous() {
	m.Tx.Asynchronous()
	*m.asynchronous = true
}

func (m *minter) Mint(resource string) uint64 {
	n := m.Tx.Mint(resource)
	m.given.Token = max(m.given.Token, n)
	return n
}

func (m *minter) Next() uint64 {
	n := m.Tx.Next()
	m.given.Sequence = max(m.given.Sequence, n)
	return n
}

// contentOf names all that a store holds; "" where it cannot be read.
func contentOf(st store.Store) string {
	h := sha256.New()
	var size [8]byte
	put := func(b []byte) {
		binary.BigEndian.PutUint64(size[:], uint64(len(b)))
		h.Write(size[:])
		h.Write(b)
	}
	err := st.View(context.Background(), func(r store.Reader) error {
		r.Scan([]byte{0}, []byte{255}, func(k, v []byte) bool {
			put(k)
			put(v)
			return true
		})
		r.Sums(nil, func(name []byte, value int64) bool {
			put(name)
			put(binary.BigEndian.AppendUint64(nil, uint64(value)))
			return true
		})
		return nil
	})
	if err != nil {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
