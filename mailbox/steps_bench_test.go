package mailbox_test

import (
	"context"
	"strings"
	"testing"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/mailbox/mailboxtest"
)

// Each step of a message's life by itself, one after another: a commit and its sync each.

var body1K = strings.Repeat("b", 1<<10)

func BenchmarkSend(b *testing.B) {
	h, _ := benchHouse(b)
	b.ReportAllocs()
	for b.Loop() {
		h.MustSend(b, "work", body1K)
	}
}

// A batch of a thousand, staged and then made visible; an operation is one message.
func BenchmarkSendBatch(b *testing.B) {
	h, _ := benchHouse(b)
	list := make([]mailbox.Outgoing, 1000)
	for i := range list {
		list[i] = mailbox.Outgoing{To: "work", Body: []byte(body1K)}
	}
	b.ReportAllocs()
	messages := 0
	for b.Loop() {
		if _, err := h.Box.SendBatch(context.Background(), list, nil); err != nil {
			b.Fatal(err)
		}
		messages += len(list)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(messages), "ns/msg")
}

func BenchmarkClaim(b *testing.B) {
	h, a := benchHouse(b)
	var claimed []mailbox.Delivery
	inLots(b, func(n int) {
		settleAll(b, h, a, claimed)
		claimed = claimed[:0]
		for range n {
			h.MustSend(b, "work", body1K)
		}
	}, func(int) { claimed = append(claimed, h.MustClaim(b, a, 0)) })
}

func BenchmarkSettle(b *testing.B) {
	h, a := benchHouse(b)
	var claimed []mailbox.Delivery
	inLots(b, func(n int) {
		claimed = claimed[:0]
		for range n {
			h.MustSend(b, "work", body1K)
			claimed = append(claimed, h.MustClaim(b, a, 0))
		}
	}, func(i int) { h.MustSettle(b, a, mailboxtest.RefOf(claimed[i]), mailboxtest.Completed("")) })
}

// A renewal with news is a commit; one of a claim that is kept by itself, without news, is
// none.
func BenchmarkRenew(b *testing.B) {
	for name, news := range map[string]bool{"progress": true, "kept": false} {
		b.Run(name, func(b *testing.B) {
			h, a := benchHouse(b)
			h.MustSend(b, "work", body1K)
			ref := mailboxtest.RefOf(h.MustClaim(b, a, 0))
			said := [2]string{"half", "more than half"}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				var progress *string
				if news {
					progress = &said[i%2]
				}
				if _, _, err := h.Box.Renew(context.Background(), a, ref, progress); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// inLots measures step, with the lot prepared for it while the clock stands.
func inLots(b *testing.B, prepare func(n int), step func(i int)) {
	const lot = 100
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%lot == 0 {
			b.StopTimer()
			prepare(lot)
			b.StartTimer()
		}
		step(i % lot)
	}
}

func settleAll(b *testing.B, h *mailboxtest.House, a fence.Holder, claimed []mailbox.Delivery) {
	for _, d := range claimed {
		h.MustSettle(b, a, mailboxtest.RefOf(d), mailboxtest.Completed(""))
	}
}
