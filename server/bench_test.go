package server_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/worker"
)

// What a request costs without the store: connection, line, identity, answer.
func BenchmarkPing(b *testing.B) {
	h, c := benchClient(b)
	_ = h
	b.Run("one", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := c.Ping(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("pipelined", func(b *testing.B) {
		b.ReportAllocs()
		b.SetParallelism(64)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if err := c.Ping(b.Context()); err != nil {
					b.Error(err)
					return
				}
			}
		})
	})
}

// One request after the other on a channel, by a peer that allocates nothing.
func BenchmarkLink(b *testing.B) {
	for name, line := range map[string][]byte{
		"ping": request(protocol.MethodPing, `{}`),
		"send": request(protocol.MethodSend, `{"to":"resize","body":"`+strings.Repeat("0123456789abcdef", 64)+`"}`),
	} {
		b.Run(name, func(b *testing.B) {
			h := newHouse(b)
			ours, theirs := socketPair(b)
			defer h.server.Attach(ours, h.birth("resize", 1, config.Worker)).Close()
			defer theirs.Close()
			answers := bufio.NewReader(theirs)
			b.ReportAllocs()
			for b.Loop() {
				_, err := theirs.Write(line)
				if answer, readErr := answers.ReadSlice('\n'); err != nil || readErr != nil || bytes.Contains(answer, []byte(`"error"`)) {
					b.Fatalf("%s: %v, %v", answer, err, readErr)
				}
			}
		})
	}
}

// Complete and claim the next in one call, by many at a time on one connection.
func BenchmarkCompleteNext(b *testing.B) {
	h, c := benchClient(b)
	b.ReportAllocs()
	b.SetParallelism(64)
	b.RunParallel(func(pb *testing.PB) {
		var held []protocol.Delivery
		for pb.Next() {
			if _, err := h.box.Send(b.Context(), mailbox.Outgoing{To: "resize", Body: []byte("0123456789")}); err != nil {
				b.Error(err)
				return
			}
			if len(held) == 0 {
				var err error
				if held, _, err = c.Claim(b.Context(), protocol.ClaimParams{}); err != nil {
					b.Error(err)
					return
				}
				continue
			}
			out, _, err := c.Complete(b.Context(), protocol.CompleteParams{ID: held[0].ID, Token: held[0].Token, Next: &protocol.Next{}})
			if err != nil {
				b.Error(err)
				return
			}
			held = out.Messages
		}
	})
}

// A message through the sockets, by many clients with a connection each, who write
// and read no more than they need: one sends, claims and completes.
func BenchmarkMessage(b *testing.B) {
	h := newHouse(b)
	who := identity(h.birth("resize", 1, config.Worker))
	params := fmt.Sprintf(`{"process":%q,"lease_token":%d`, who.Process, who.LeaseToken)
	send := request(protocol.MethodSend, params+`,"to":"resize","body":"`+strings.Repeat("0123456789abcdef", 64)+`"}`)
	claim := request(protocol.MethodClaim, params+`,"wait":"1h"}`)
	b.ReportAllocs()
	b.SetParallelism(64)
	b.RunParallel(func(pb *testing.PB) {
		conn, err := net.Dial("unix", h.worker.Path())
		if err != nil {
			b.Error(err)
			return
		}
		defer conn.Close()
		answers := bufio.NewReader(conn)
		ask := func(request []byte) []byte {
			_, err := conn.Write(request)
			answer, readErr := answers.ReadSlice('\n')
			if err = errors.Join(err, readErr); err != nil || bytes.Contains(answer, []byte(`"error"`)) {
				b.Errorf("%s: %v", answer, err)
				return nil
			}
			return answer
		}
		for pb.Next() {
			ask(send)
			answer := ask(claim)
			_, rest, _ := bytes.Cut(answer, []byte(`"id":"`))
			id, rest, _ := bytes.Cut(rest, []byte(`"`))
			_, rest, _ = bytes.Cut(rest, []byte(`"token":`))
			token, _, _ := bytes.Cut(rest, []byte(`,`))
			if ask(request(protocol.MethodComplete, params+`,"id":"`+string(id)+`","token":`+string(token)+`}`)) == nil {
				return
			}
		}
	})
}

func request(method, params string) []byte {
	return []byte(`{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + "}\n")
}

func benchClient(b *testing.B) (*house, *worker.Client) {
	b.Helper()
	h := newHouse(b)
	conn, err := net.Dial("unix", h.worker.Path())
	if err != nil {
		b.Fatal(err)
	}
	c := worker.NewClient(conn, identity(h.birth("resize", 1, config.Worker)))
	b.Cleanup(func() { _ = c.Close() })
	return h, c
}
