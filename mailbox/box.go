package mailbox

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store"
)

// Options of a Box; zero values are the real clock, real chance, no log, and blocks of
// a thousand messages.
type Options struct {
	Wall   func() time.Time // the wall clock, for due times and for people; nil = time.Now
	Random func() float64   // jitter, from 0 to 1; nil = math/rand/v2
	Log    *slog.Logger     // nil = discard

	Arrivals *HandedArrivals // of the box whose place this one takes; nil = it takes none's

	BlockBits   uint8 // the last bits of an id that its block leaves out, see block.go; 0 = 10
	UnmarkAfter int   // after so many ended messages the marks of blocks are looked at; 0 = 8192
}

// A Box is the mailbox of one store. Its methods may be called from any
// goroutine. Every answer waits until what it says is durable, but that of some claims
// (see Claim).
type Box struct {
	store  store.Store
	leases *fence.Leases
	wall   func() time.Time
	random func() float64
	log    *slog.Logger

	index     *index
	actors    *actors
	journal   *journal
	ends      *ends
	arrivals  *arrivals
	busy      *inFlight
	grants    *grants
	rest      *leftovers
	refused   refused
	tallies   tallies
	retention *alarm              // ended messages and events whose time is over
	trimmed   map[trimKey]trimmed // of the goroutine that looks after retention
	steady    steadiness          // of the same goroutine
	lapses    *alarm              // NEW messages whose time to live is over
	bounds    listBounds
	stale     stale // marks of blocks in which nothing is left

	reading sync.Mutex // held by who reads a block into the index; guards found
	found   []readied  // room for what is in it

	stepped chan struct{} // the wall clock was set; holds one

	hookMu       sync.RWMutex // guards the three functions below
	onLost       func(h fence.Holder, ref Ref, reason string)
	onResultGone func(id ID, attempt int)
	onOverdue    func(h fence.Holder, ref Ref, why Category)
}

// Open returns the mailbox of a store without its indexes: enough to send, read
// and administer. Load builds them. Close it before the store.
func Open(ctx context.Context, st store.Store, leases *fence.Leases, o Options) (*Box, error) {
	b := &Box{store: st, leases: leases, wall: o.Wall, random: o.Random, log: o.Log,
		index: newIndex(leases.Need, o.BlockBits), actors: newActors(), ends: newEnds(), busy: newInFlight(), grants: newGrants(), rest: newLeftovers(), retention: newAlarm(), trimmed: map[trimKey]trimmed{}, lapses: newAlarm(), stepped: make(chan struct{}, 1), bounds: ordinaryBounds, stale: stale{alarm: newAlarm(), after: int64(cmp.Or(o.UnmarkAfter, unmarkAfter))}}
	if b.wall == nil {
		b.wall = time.Now
	}
	if b.random == nil {
		b.random = rand.Float64
	}
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	b.journal, b.arrivals = newJournal(b), newArrivals(b.wall(), o.Arrivals)
	if err := b.loadActors(ctx); err != nil {
		return nil, err
	}
	return b, nil
}

// Close waits for the events given to Note.
func (b *Box) Close() error {
	b.journal.close()
	return nil
}

// Leases returns the leases that claims are checked against.
func (b *Box) Leases() *fence.Leases { return b.leases }

// OnLost sets the function that is told, after it is durable, that a claim was
// taken from a process that may live on: it expired, or a person cancelled the
// message. fn must not block.
func (b *Box) OnLost(fn func(h fence.Holder, ref Ref, reason string)) {
	b.hookMu.Lock()
	defer b.hookMu.Unlock()
	b.onLost = fn
}

// OnResultGone sets the function that is told, after it is durable, that a message was
// removed whose result had been cut: the rest of it, kept elsewhere, is of no use any
// more. attempt is the last of the message.
func (b *Box) OnResultGone(fn func(id ID, attempt int)) {
	b.hookMu.Lock()
	defer b.hookMu.Unlock()
	b.onResultGone = fn
}

// OnOverdue sets the function that is told that a claim has used up its
// actor's timeout (why is CategoryTimeout), or that a claim's progress has stayed the
// same for too long (CategoryNoProgress): its process is to be ended, and Leave or
// EndTask called (P4.5). fn must not block.
func (b *Box) OnOverdue(fn func(h fence.Holder, ref Ref, why Category)) {
	b.hookMu.Lock()
	defer b.hookMu.Unlock()
	b.onOverdue = fn
}

func (b *Box) tellResultGone(id ID, attempt int) {
	b.hookMu.RLock()
	defer b.hookMu.RUnlock()
	if b.onResultGone != nil {
		b.onResultGone(id, attempt)
	}
}

func (b *Box) tellLost(h fence.Holder, ref Ref, reason string) {
	b.hookMu.RLock()
	defer b.hookMu.RUnlock()
	if b.onLost != nil {
		b.onLost(h, ref, reason)
	}
}

func (b *Box) tellOverdue(c expiredClaim) {
	b.hookMu.RLock()
	defer b.hookMu.RUnlock()
	if b.onOverdue != nil {
		b.onOverdue(c.holder, c.ref, c.why)
	}
}

// Load finishes what a crash left half visible and builds the index: of the claims on
// record, and of where to look for the messages that wait. Those are read, a block at
// a time, when claims get to them. It is needed before claims and waits; its cost grows
// with what is claimed, and by a thousandth with what waits. A store that was written
// before there were blocks is read as a whole, once. Damaged records are left where they
// are, logged where they are met, and reported by Verify; the rest is served. Called
// again it does nothing.
func (b *Box) Load(ctx context.Context) error {
	x := b.index
	if x.isLoaded() {
		return nil
	}
	if err := b.finishPending(ctx); err != nil {
		return err
	}
	if err := b.markBlocks(ctx); err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	err := b.store.View(ctx, func(r store.Reader) error {
		b.scanClaims(r, func(rec *record) { x.enterLocked(rec.id, rec.hold()) })
		b.loadBlocks(r)
		return nil
	})
	if err != nil {
		return err
	}
	x.loaded = true
	for _, a := range b.actors.all() {
		x.queue(a.Name).paused = a.heldBack()
	}
	return nil
}

func (r *record) hold() *hold {
	return &hold{holder: r.holder(), token: r.claim.token, attempt: r.attempt, request: r.claim.request,
		auto: r.claim.auto, expiresAt: r.claim.expiresAt, limitAt: r.claim.limitAt, staleAt: r.claim.staleAt}
}

// WallStepped says that the wall clock was set: due times are looked at anew. It
// does not block.
func (b *Box) WallStepped() {
	select {
	case b.stepped <- struct{}{}:
	default:
	}
}

// Run makes delayed messages ready at their due time, ends those whose time to live is
// over at that time, removes ended messages and events whose retention is over, and marks
// of blocks that stand for nothing, and finishes staged sends that a full disk left
// unfinished, until ctx ends; it returns ctx's cause.
func (b *Box) Run(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var keeper sync.WaitGroup
	defer keeper.Wait()
	keeper.Go(func() {
		b.retention.watch(ctx, b.wall, time.Second, b.logging("ended messages not removed", b.purgeDue))
	})
	keeper.Go(func() {
		b.lapses.watch(ctx, b.wall, 0, b.logging("messages whose time to live is over not ended", b.lapseDue))
	})
	keeper.Go(func() {
		b.stale.alarm.watch(ctx, b.wall, 0, b.logging("marks of blocks not removed", b.tidyBlocks))
	})
	for {
		next, changed := b.index.popDue(b.wall())
		left, more := b.finishRest(ctx)
		wait := time.Duration(-1)
		if !next.IsZero() {
			wait = max(0, next.Sub(b.wall()))
		}
		if left && (wait < 0 || wait > restPause) {
			wait = restPause
		}
		var fire <-chan time.Time
		if wait >= 0 {
			timer.Reset(wait)
			fire = timer.C
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		case <-more:
		case <-b.stepped:
			b.retention.again()
			b.lapses.again()
		case <-fire:
		}
	}
}

// logging is look, which says what an error meant. That of a store that is closed means
// nothing: a supervisor that ends, or hands its place over, closes it before ctx ends, and
// the next one looks for itself.
func (b *Box) logging(what string, look func(context.Context) (time.Time, error)) func(context.Context) (time.Time, error) {
	return func(ctx context.Context) (time.Time, error) {
		next, err := look(ctx)
		if err != nil && ctx.Err() == nil && !refusal.Has(err, refusal.Unavailable) {
			b.log.Error(what, "err", err)
		}
		return next, err
	}
}

// get reads the record of a message wherever it lies, nil if there is none.
func (b *Box) get(r store.Reader, id ID) (*record, error) {
	rec := new(record)
	v := r.Get(putIDKey(&rec.keys[0], spaceOpen, id))
	if v == nil {
		v = r.Get(putIDKey(&rec.keys[1], spaceClosed, id))
	}
	if v == nil {
		return nil, nil
	}
	if err := rec.decode(id, v, b.actors.name); err != nil {
		return nil, err
	}
	return rec, nil
}

// mustRead is get of a message that is there: in a transaction that has failed already
// nothing is read, and its error is the one that counts.
func (b *Box) mustRead(r store.Reader, id ID) (*record, error) {
	rec, err := b.get(r, id)
	if err == nil && rec == nil {
		err = missing(id)
	}
	return rec, err
}

// mustGet is get with a refusal where there is no such message, or none that
// anybody may see yet.
func (b *Box) mustGet(r store.Reader, id ID) (*record, error) {
	rec, err := b.get(r, id)
	if err != nil {
		return nil, err
	}
	switch {
	case rec == nil:
		return nil, missing(id)
	case rec.state != staged:
		return rec, nil
	case published(r, rec.parent):
		return nil, refusal.New(refusal.WrongState, "message "+id.String()+" is just being delivered",
			"the attempt that sent it has completed this moment", "try again").Later()
	}
	return nil, missing(id)
}

func missing(id ID) error {
	return refusal.New(refusal.MessageMissing, "there is no message "+id.String(),
		"it was never sent, or it has been dropped", "see `sovereign inbox`")
}
