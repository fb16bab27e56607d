package mailbox_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/mailbox/mailboxtest"
)

func benchHouse(b *testing.B) (*mailboxtest.House, fence.Holder) {
	actor := mailboxtest.Actor("work")
	actor.Limit, actor.Auto, actor.Timeout = 0, true, 10*time.Minute
	h := mailboxtest.New(b.TempDir()) // on the disk: its syncs are what is measured
	h.Mailbox.BlockBits = 10          // as in the product
	h.MustOpen(b)
	b.Cleanup(func() { _ = h.Close() })
	if err := h.Box.SetActors(context.Background(), []mailbox.Actor{actor}); err != nil {
		b.Fatal(err)
	}
	return h, h.MustBegin(b, "work", 1)
}

// One message at a time: three commits each.
func BenchmarkSendClaimComplete(b *testing.B) {
	h, a := benchHouse(b)
	b.ReportAllocs()
	for b.Loop() {
		h.MustSend(b, "work", "body")
		d := h.MustClaim(b, a, 0)
		h.MustSettle(b, a, mailboxtest.RefOf(d), mailboxtest.Completed(""))
	}
}

// 64 senders and 64 workers with a lease each, bodies of 1 KiB: commits are shared.
func BenchmarkSendClaimComplete64(b *testing.B) {
	h, a := benchHouse(b)
	workers := []fence.Holder{a}
	for i := 2; i <= 64; i++ {
		workers = append(workers, h.MustBegin(b, "work", i))
	}
	body := strings.Repeat("b", 1<<10)
	b.ReportAllocs()
	b.ResetTimer()
	ctx := context.Background()
	var left, done atomic.Int64
	left.Store(int64(b.N))
	var all sync.WaitGroup
	waits, stop := context.WithCancel(ctx)
	defer stop()
	before := cpu(b)
	for _, a := range workers {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				h.MustSend(b, "work", body)
			}
		})
		all.Go(func() {
			for {
				got, err := h.Box.Claim(waits, a, mailbox.ClaimRequest{Wait: -1})
				if err != nil {
					return
				}
				for _, d := range got {
					h.MustSettle(b, a, mailboxtest.RefOf(d), mailboxtest.Completed(""))
					if done.Add(1) == int64(b.N) {
						stop()
					}
				}
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
	b.ReportMetric((cpu(b)-before)/float64(b.N)*1e6, "cpu-µs/msg")
}

// cpu is what the process has used so far, in seconds.
func cpu(b *testing.B) float64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// A start with many open messages, and what each costs in memory.
func BenchmarkLoad(b *testing.B) {
	const n = 200_000
	h, _ := benchHouse(b)
	var all sync.WaitGroup
	for range 256 {
		all.Go(func() {
			for range n / 256 {
				h.MustSend(b, "work", "body")
			}
		})
	}
	all.Wait()
	ctx := context.Background()
	var before, after runtime.MemStats
	b.ReportAllocs()
	for b.Loop() {
		runtime.GC()
		runtime.ReadMemStats(&before)
		box, err := mailbox.Open(ctx, h.Store, h.Leases, mailbox.Options{})
		if err != nil {
			b.Fatal(err)
		}
		if err := errors.Join(box.Load(ctx), box.ReadAll(ctx)); err != nil {
			b.Fatal(err)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		if box.ReadyEntries() < n/256*256 {
			b.Fatal(box.ReadyEntries())
		}
		runtime.KeepAlive(box)
	}
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/n, "B/msg")
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)/n*1e9, "ns/msg")
}
