package mailbox

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/fence"
)

// What a message's life asks of the index: it becomes ready, is taken, held, renewed, and
// given up, while a hundred thousand others wait for as many recipients as the name says.
func BenchmarkReadyIndex(b *testing.B) {
	for _, recipients := range []int{1, 64} {
		b.Run(fmt.Sprintf("recipients=%d", recipients), func(b *testing.B) {
			const waiting = 100_000
			x := newIndex(func() func() { return func() {} }, 0)
			x.loaded = true
			names := make([]string, recipients)
			for i := range names {
				names[i] = fmt.Sprintf("work%d", i)
			}
			now := time.Now()
			for i := range waiting {
				x.push(names[i%recipients], ID(i+1), 0, time.Time{}, now)
			}
			process := fence.NewProcess()
			b.ReportAllocs()
			for n := waiting; b.Loop(); n++ {
				to := names[n%recipients]
				x.push(to, ID(n+1), 0, time.Time{}, now)
				id, _, _, _ := x.take(to, false)
				if id == 0 {
					b.Fatal("nothing was ready")
				}
				token := fence.Token(n)
				x.granted(id, &hold{id: id, place: -1, token: token, expiresAt: fence.Instant(n),
					holder: fence.Holder{Slot: fence.Slot{Actor: to, Number: 1}, Process: process}})
				x.renewed(Ref{ID: id, Token: token}, fence.Instant(n+1), 0)
				x.ended(Ref{ID: id, Token: token})
			}
		})
	}
}

// What is on disk of a message, written and read.
func BenchmarkRecord(b *testing.B) {
	r := record{id: 7, state: Claimed, to: "work", attempts: 1}
	r.claim.process, r.claim.token, r.claim.lease, r.claim.slot, r.claim.expiresAt = fence.NewProcess(), 12, 11, 1, 99
	written := r.encode()
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r.encode()
		}
	})
	b.Run("decode", func(b *testing.B) {
		names := func([]byte) string { return "work" }
		b.ReportAllocs()
		for b.Loop() {
			if _, err := decodeRecord(7, written, names); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// A body of 1 KiB with what stands beside it, written and read.
func BenchmarkContent(b *testing.B) {
	c := content{from: "cron", subject: "nightly", headers: map[string]string{"kind": "tar"}, createdAt: time.Now().UTC(), body: []byte(strings.Repeat("b", 1<<10))}
	written := c.encode()
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c.encode()
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := decodeContent(7, written); err != nil {
				b.Fatal(err)
			}
		}
	})
}
