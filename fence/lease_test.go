package fence_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store"
	"github.com/sovereign-run/sovereign/store/bolt"
)

// A child of TestAcquire_OneWinsAmongProcesses is this binary, run again.
func TestMain(m *testing.M) {
	if dir := os.Getenv("FENCE_TEST_ACQUIRE"); dir != "" {
		os.Exit(acquireAsProcess(dir))
	}
	os.Exit(m.Run())
}

type clock struct{ at atomic.Int64 }

func (c *clock) now() fence.Instant      { return fence.Instant(c.at.Load()) }
func (c *clock) advance(d time.Duration) { c.at.Add(int64(d)) }

func open(t testing.TB) (*fence.Leases, *clock, *bolt.DB) {
	t.Helper()
	db, err := bolt.Open(t.TempDir(), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	c := &clock{}
	c.at.Store(int64(time.Hour))
	return fence.New(db, c.now), c, db
}

var slot = fence.Slot{Actor: "resize", Number: 1}

func mustAcquire(t testing.TB, l *fence.Leases, s fence.Slot, p fence.Process) fence.Lease {
	t.Helper()
	lease, err := l.Acquire(context.Background(), s, p, 10*time.Second)
	if err != nil {
		t.Fatalf("acquire %s: %v", s, err)
	}
	return lease
}

func wantRefusal(t testing.TB, doing string, err error, c refusal.Category) {
	t.Helper()
	if !refusal.Has(err, c) {
		t.Fatalf("%s: got %v, want %s", doing, err, c)
	}
}

// P1.1: identities are random and unique. P10: none is printed whole.
func TestProcess_IsUniqueAndNeverPrintedWhole(t *testing.T) {
	seen := map[fence.Process]bool{}
	for range 10000 {
		p := fence.NewProcess()
		if seen[p] {
			t.Fatal("an identity was given twice")
		}
		seen[p] = true
		if _, err := fence.ParseProcess(string(p)); err != nil {
			t.Fatal(err)
		}
	}
	p := fence.NewProcess()
	var out strings.Builder
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "process", p)
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "process", p)
	fmt.Fprintf(&out, "%s %v %q %x %+v", p, p, p, p, struct{ P fence.Process }{p})
	if strings.Contains(out.String(), string(p)) || strings.Contains(out.String(), string(p)[13:]) {
		t.Fatalf("an identity was printed whole: %s", out.String())
	}
	for _, bad := range []string{"", "proc_", "proc_" + strings.Repeat("g", 32), "proc_" + strings.Repeat("A", 32), string(p) + "0", string(p)[1:]} {
		_, err := fence.ParseProcess(bad)
		wantRefusal(t, "parse "+bad, err, refusal.BadRequest)
	}
}

// P1.2: tokens start at 1.
func TestAcquire_FirstTokenIsOne(t *testing.T) {
	l, _, _ := open(t)
	if lease := mustAcquire(t, l, slot, fence.NewProcess()); lease.Token != 1 {
		t.Fatalf("the first token is %d", lease.Token)
	}
}

// P1.3: of many goroutines exactly one wins. Remove the case `found &&
// !l.expired` in AcquireTx and this fails.
func TestAcquire_OneWinsAmongGoroutines(t *testing.T) {
	l, _, _ := open(t)
	for round := range 20 {
		s := fence.Slot{Actor: "resize", Number: round + 1}
		var won atomic.Int32
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				_, err := l.Acquire(context.Background(), s, fence.NewProcess(), time.Minute)
				switch {
				case err == nil:
					won.Add(1)
				case !refusal.Has(err, refusal.ActorLeaseHeld):
					t.Errorf("acquire: %v", err)
				}
			})
		}
		all.Wait()
		if won.Load() != 1 {
			t.Fatalf("%d of 16 won", won.Load())
		}
	}
}

// P1.3: of many operating system processes exactly one wins. The store's lock
// makes them take turns; the lease that one leaves behind refuses the others.
func TestAcquire_OneWinsAmongProcesses(t *testing.T) {
	dir := t.TempDir()
	var won, refused atomic.Int32
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "FENCE_TEST_ACQUIRE="+dir, "GORACE=atexit_sleep_ms=0")
			out, err := cmd.CombinedOutput()
			switch status := cmd.ProcessState.ExitCode(); status {
			case 0:
				won.Add(1)
			case 3:
				refused.Add(1)
			default:
				t.Errorf("child: %v, %d: %s", err, status, out)
			}
		})
	}
	all.Wait()
	if won.Load() != 1 || refused.Load() != 5 {
		t.Fatalf("%d won and %d were refused, want 1 and 5", won.Load(), refused.Load())
	}
}

func acquireAsProcess(dir string) int {
	for {
		db, err := bolt.Open(dir, bolt.Options{})
		if refusal.Has(err, refusal.StoreLocked) {
			continue // another has its turn
		}
		if err != nil {
			fmt.Println(err)
			return 1
		}
		defer db.Close()
		_, err = fence.New(db, func() fence.Instant { return fence.Instant(db.Now()) }).
			Acquire(context.Background(), slot, fence.NewProcess(), time.Hour)
		switch {
		case err == nil:
			return 0
		case refusal.Has(err, refusal.ActorLeaseHeld):
			return 3
		}
		fmt.Println(err)
		return 1
	}
}

// P1.4, mistake 26: renewing keeps the token, can be repeated, never shortens.
// Remove the max in extend and this fails.
func TestRenew_KeepsTokenAndNeverShortens(t *testing.T) {
	l, c, _ := open(t)
	first := mustAcquire(t, l, slot, fence.NewProcess())
	c.advance(time.Second)
	long, err := l.Renew(context.Background(), first.Holder(), time.Hour)
	if err != nil || long.Token != first.Token || long.ExpiresAt != c.now()+fence.Instant(time.Hour) {
		t.Fatalf("renew: %+v, %v", long, err)
	}
	short, err := l.Renew(context.Background(), first.Holder(), time.Second)
	if err != nil || short.ExpiresAt != long.ExpiresAt {
		t.Fatalf("renew for less moved the expiry from %d to %d, %v", long.ExpiresAt, short.ExpiresAt, err)
	}
}

// P1.5, P1.7: another identity or another token can neither renew nor release,
// and changes nothing. Remove either comparison in CheckTx or ReleaseTx and this
// fails.
func TestRenewAndRelease_NeedIdentityAndToken(t *testing.T) {
	l, _, db := open(t)
	lease := mustAcquire(t, l, slot, fence.NewProcess())
	other, stale, none := lease.Holder(), lease.Holder(), lease.Holder()
	other.Process = fence.NewProcess()
	stale.Token++
	none.Token = 0
	for _, h := range []fence.Holder{other, stale, none, {Slot: fence.Slot{Actor: "resize", Number: 2}, Process: lease.Process, Token: lease.Token},
		{Slot: fence.Slot{Actor: "resize", Number: 1 + 1<<16}, Process: lease.Process, Token: lease.Token}} {
		_, err := l.Renew(context.Background(), h, time.Hour)
		wantRefusal(t, "renew", err, refusal.ActorLeaseLost)
		wantRefusal(t, "release", l.Release(context.Background(), h), refusal.ActorLeaseLost)
	}
	_ = db.View(context.Background(), func(r store.Reader) error {
		if got, ok, err := l.Get(r, slot); got != lease || !ok || err != nil {
			t.Errorf("the lease is %+v, want %+v", got, lease)
		}
		return nil
	})
}

// P1.6, P1.10: a takeover mints a greater token, and the old holder can do
// nothing more, before the takeover (lease_expired) or after (actor_lease_lost).
// Remove the expiry in CheckTx and this fails.
func TestTakeover_FencesTheOldHolder(t *testing.T) {
	l, c, _ := open(t)
	old := mustAcquire(t, l, slot, fence.NewProcess())
	c.advance(10*time.Second - 1)
	_, err := l.Acquire(context.Background(), slot, fence.NewProcess(), time.Second)
	wantRefusal(t, "acquire before the expiry", err, refusal.ActorLeaseHeld)
	c.advance(1)
	_, err = l.Renew(context.Background(), old.Holder(), time.Hour)
	wantRefusal(t, "renew at the expiry", err, refusal.LeaseExpired)

	taken := mustAcquire(t, l, slot, fence.NewProcess())
	if taken.Token <= old.Token {
		t.Fatalf("token %d after %d", taken.Token, old.Token)
	}
	_, err = l.Renew(context.Background(), old.Holder(), time.Hour)
	wantRefusal(t, "renew after a takeover", err, refusal.ActorLeaseLost)
	wantRefusal(t, "release after a takeover", l.Release(context.Background(), old.Holder()), refusal.ActorLeaseLost)
}

// P1.7: the counter outlives the lease. P1.8: the holder that asks again gets
// its token back; after its expiry it gets another.
func TestAcquire_Again(t *testing.T) {
	l, c, _ := open(t)
	p := fence.NewProcess()
	first := mustAcquire(t, l, slot, p)
	if again := mustAcquire(t, l, slot, p); again.Token != first.Token {
		t.Fatalf("asked again: token %d, want %d", again.Token, first.Token)
	}
	c.advance(time.Minute)
	late := mustAcquire(t, l, slot, p)
	if late.Token <= first.Token {
		t.Fatalf("after its expiry: token %d after %d", late.Token, first.Token)
	}
	if err := l.Release(context.Background(), late.Holder()); err != nil {
		t.Fatal(err)
	}
	if next := mustAcquire(t, l, slot, p); next.Token <= late.Token {
		t.Fatalf("after a release: token %d after %d", next.Token, late.Token)
	}
}

// P9, P1.10: a lease that is kept does not expire, and does once it is dropped.
func TestKeep_HoldsTheExpiryOff(t *testing.T) {
	l, c, _ := open(t)
	lease := mustAcquire(t, l, slot, fence.NewProcess())
	l.Keep(slot, lease.Token)
	c.advance(time.Hour)
	if _, err := l.Renew(context.Background(), lease.Holder(), 10*time.Second); err != nil {
		t.Fatal(err)
	}
	l.Drop(slot, lease.Token+1) // another's: nothing
	c.advance(time.Hour)
	_, err := l.Acquire(context.Background(), slot, fence.NewProcess(), time.Second)
	wantRefusal(t, "acquire a kept slot", err, refusal.ActorLeaseHeld)
	l.Drop(slot, lease.Token)
	_, err = l.Renew(context.Background(), lease.Holder(), time.Second)
	wantRefusal(t, "renew after keeping ended", err, refusal.LeaseExpired)
}

// P1.9: a damaged record fails closed, harms no other slot, and can be reset,
// but not while its process lives. Flip any byte of the record, cut it
// anywhere: it is refused. Remove the checksum in decodeLease and this fails.
func TestCorruptLease_FailsClosed(t *testing.T) {
	ctx := context.Background()
	l, _, db := open(t)
	lease := mustAcquire(t, l, slot, fence.NewProcess())
	other := mustAcquire(t, l, fence.Slot{Actor: "resize", Number: 2}, fence.NewProcess())
	key := []byte("lresize\x00\x00\x01")
	var whole []byte
	put := func(v []byte) {
		if err := db.Update(ctx, func(tx store.Tx) error { tx.Put(key, v); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	_ = db.View(ctx, func(r store.Reader) error { whole = append(whole, r.Get(key)...); return nil })
	var damaged [][]byte
	for i := range whole {
		flipped := append([]byte(nil), whole...)
		flipped[i] ^= 1 << (i % 8)
		damaged = append(damaged, flipped)
		if i%7 == 0 {
			damaged = append(damaged, whole[:i])
		}
	}
	damaged = append(damaged, append(append([]byte(nil), whole...), 0))
	for at, v := range map[int]uint64{17: 0, 25: math.MaxInt64, 41: 1 << 63} { // incomplete, with a checksum that is right: no token, renewed before acquired, expired before renewed
		b := append([]byte(nil), whole...)
		binary.BigEndian.PutUint64(b[at:], v)
		sum := crc32.Checksum(b[:len(b)-4], crc32.MakeTable(crc32.Castagnoli))
		damaged = append(damaged, binary.BigEndian.AppendUint32(b[:len(b)-4], sum))
	}
	for _, v := range damaged[:12] {
		put(v)
		_, err := l.Acquire(ctx, slot, fence.NewProcess(), time.Second)
		wantRefusal(t, "acquire", err, refusal.LeaseCorrupt)
	}
	for _, v := range damaged {
		if _, err := fence.DecodeLease(slot, v); !refusal.Has(err, refusal.LeaseCorrupt) {
			t.Fatalf("a damaged record was read: %x", v)
		}
	}
	_, err := l.Renew(ctx, lease.Holder(), time.Second)
	wantRefusal(t, "renew", err, refusal.LeaseCorrupt)
	wantRefusal(t, "release", l.Release(ctx, lease.Holder()), refusal.LeaseCorrupt)
	if _, err := l.Renew(ctx, other.Holder(), time.Second); err != nil {
		t.Fatalf("another slot is affected: %v", err)
	}
	records, err := l.List(ctx)
	if err != nil || len(records) != 2 || !refusal.Has(records[0].Err, refusal.LeaseCorrupt) || records[1].Err != nil {
		t.Fatalf("list: %+v, %v", records, err)
	}

	l.Keep(slot, lease.Token)
	_, err = l.Reset(ctx, slot)
	wantRefusal(t, "reset while its process lives", err, refusal.ActorLeaseHeld)
	l.Drop(slot, lease.Token)
	done := l.Starting(slot)
	_, err = l.Reset(ctx, slot)
	wantRefusal(t, "reset while a process is being started", err, refusal.ActorLeaseHeld)
	done()
	if existed, err := l.Reset(ctx, slot); !existed || err != nil {
		t.Fatalf("reset: %v, %v", existed, err)
	}
	if next := mustAcquire(t, l, slot, fence.NewProcess()); next.Token <= lease.Token {
		t.Fatalf("after a reset: token %d after %d", next.Token, lease.Token)
	}
}

// A slot that a key cannot hold is refused, and is not another slot.
func TestAcquire_RefusesImpossibleSlots(t *testing.T) {
	l, _, _ := open(t)
	for _, s := range []fence.Slot{{}, {Actor: "a"}, {Actor: "a", Number: -1}, {Actor: "a", Number: 1 << 16}, {Actor: "a\x00b", Number: 1}} {
		_, err := l.Acquire(context.Background(), s, fence.NewProcess(), time.Second)
		wantRefusal(t, s.String(), err, refusal.BadRequest)
	}
	_, err := l.Acquire(context.Background(), slot, fence.NewProcess(), 0)
	wantRefusal(t, "no ttl", err, refusal.BadRequest)
	_, err = l.Acquire(context.Background(), slot, "proc_1", time.Second)
	wantRefusal(t, "no identity", err, refusal.BadRequest)
}

// Both lies of a disk: what failed and was not stored grants nothing, and the
// next acquisition mints a greater token all the same.
func TestAcquire_DiskLies(t *testing.T) {
	var lie func(commit func() error) error
	db, err := bolt.Open(t.TempDir(), bolt.Options{Commit: func(commit func() error) error {
		if lie != nil {
			return lie(commit)
		}
		return commit()
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	c := &clock{}
	l := fence.New(db, c.now)
	lie = func(func() error) error { return errors.New("no") }
	if _, err := l.Acquire(context.Background(), slot, fence.NewProcess(), time.Second); err == nil {
		t.Fatal("granted what was not stored")
	}
	lie = nil
	if lease := mustAcquire(t, l, slot, fence.NewProcess()); lease.Token < 1 {
		t.Fatalf("token %d", lease.Token)
	}
}

// TestModel holds the leases of two slots against a plain model (P1.2-P1.10).
func TestModel(t *testing.T) {
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		db, err := bolt.Open(fmt.Sprint(dir, "/", n), bolt.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		ctx := context.Background()
		c := &clock{}
		l := fence.New(db, c.now)
		held := map[fence.Slot]fence.Lease{}
		last := fence.Token(0)
		var all []fence.Holder
		processes := []fence.Process{fence.NewProcess(), fence.NewProcess(), fence.NewProcess()}
		drawSlot := func(t *rapid.T) fence.Slot {
			return fence.Slot{Actor: "a", Number: rapid.IntRange(1, 2).Draw(t, "slot")}
		}
		judge := func(h fence.Holder) refusal.Category {
			cur, ok := held[h.Slot]
			switch {
			case !ok || cur.Process != h.Process || cur.Token != h.Token:
				return refusal.ActorLeaseLost
			case c.now() >= cur.ExpiresAt:
				return refusal.LeaseExpired
			}
			return ""
		}
		is := func(t *rapid.T, err error, want refusal.Category) {
			t.Helper()
			if (err == nil) != (want == "") || err != nil && !refusal.Has(err, want) {
				t.Fatalf("got %v, want %q", err, want)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"acquire": func(t *rapid.T) {
				s, p := drawSlot(t), rapid.SampledFrom(processes).Draw(t, "process")
				ttl := time.Duration(rapid.IntRange(1, 5).Draw(t, "ttl")) * time.Second
				cur, ok := held[s]
				live := ok && c.now() < cur.ExpiresAt
				got, err := l.Acquire(ctx, s, p, ttl)
				switch {
				case live && cur.Process != p:
					is(t, err, refusal.ActorLeaseHeld)
					return
				case live:
					is(t, err, "")
					if got.Token != cur.Token || got.ExpiresAt < cur.ExpiresAt {
						t.Fatalf("%+v after %+v", got, cur)
					}
				default:
					is(t, err, "")
					if got.Token <= last || got.ExpiresAt != c.now()+fence.Instant(ttl) {
						t.Fatalf("%+v after token %d", got, last)
					}
					last = got.Token
				}
				held[s] = got
				all = append(all, got.Holder())
			},
			"renew": func(t *rapid.T) {
				if len(all) == 0 {
					t.Skip()
				}
				h := rapid.SampledFrom(all).Draw(t, "holder")
				got, err := l.Renew(ctx, h, 3*time.Second)
				is(t, err, judge(h))
				if err == nil {
					held[h.Slot] = got
				}
			},
			"release": func(t *rapid.T) {
				if len(all) == 0 {
					t.Skip()
				}
				h := rapid.SampledFrom(all).Draw(t, "holder")
				want := judge(h)
				if want == refusal.LeaseExpired {
					want = "" // an expired lease may be given up
				}
				is(t, l.Release(ctx, h), want)
				if want == "" {
					delete(held, h.Slot)
				}
			},
			"advance": func(t *rapid.T) { c.advance(time.Duration(rapid.IntRange(1, 4).Draw(t, "s")) * time.Second) },
			"": func(t *rapid.T) {
				records, err := l.List(ctx)
				if err != nil || len(records) != len(held) {
					t.Fatalf("%d leases, want %d, %v", len(records), len(held), err)
				}
				for _, r := range records {
					if r.Lease != held[r.Slot] {
						t.Fatalf("%+v, want %+v", r.Lease, held[r.Slot])
					}
				}
			},
		})
	})
}

// A record that is read is the record that was written, and whatever bytes are
// given, nothing panics.
func FuzzDecodeLease(f *testing.F) {
	f.Add([]byte{})
	f.Add(fence.EncodeLease(fence.Lease{Slot: slot, Process: fence.NewProcess(), Token: 7, AcquiredAt: 1, RenewedAt: 2, ExpiresAt: 3}))
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := fence.DecodeLease(slot, b)
		if err != nil {
			if !refusal.Has(err, refusal.LeaseCorrupt) {
				t.Fatalf("%v", err)
			}
			return
		}
		if string(fence.EncodeLease(l)) != string(b) {
			t.Fatalf("%x is read and written as %x", b, fence.EncodeLease(l))
		}
	})
}
