package bolt_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/sovereign-run/sovereign/store"
	"github.com/sovereign-run/sovereign/store/bolt"
)

// threePuts is about what sending a message writes.
func threePuts(n uint64) func(store.Tx) error {
	return func(tx store.Tx) error {
		id := tx.Next()
		key := func(space byte) []byte { return binary.BigEndian.AppendUint64([]byte{space}, id) }
		tx.Put(key('m'), make([]byte, 100))
		tx.Put(key('b'), make([]byte, 1024))
		tx.Put(key('r'), make([]byte, 16))
		tx.Add([]byte("depth"), 1)
		return nil
	}
}

func BenchmarkUpdate_ThreePuts(b *testing.B) {
	ctx := context.Background()
	for _, callers := range []int{1, 128} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			db, err := bolt.Open(b.TempDir(), bolt.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer db.Close()
			b.ReportAllocs()
			if callers == 1 {
				for b.Loop() {
					if err := db.Update(ctx, threePuts(0)); err != nil {
						b.Fatal(err)
					}
				}
			} else {
				b.SetParallelism(callers / 2)
				var n atomic.Uint64
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if err := db.Update(ctx, threePuts(n.Add(1))); err != nil {
							b.Error(err)
						}
					}
				})
			}
			s := db.Stats()
			b.ReportMetric(float64(s.Functions)/float64(s.Commits), "functions/commit")
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "updates/s")
		})
	}
}

// BenchmarkLifecycle is a message's life as three functions: send, claim, settle.
func BenchmarkLifecycle(b *testing.B) {
	ctx := context.Background()
	db, err := bolt.Open(b.TempDir(), bolt.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	b.ReportAllocs()
	b.SetParallelism(64)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			var id uint64
			key := func(space byte) []byte { return binary.BigEndian.AppendUint64([]byte{space}, id) }
			steps := []func(store.Tx) error{
				func(tx store.Tx) error {
					id = tx.Next()
					tx.Put(key('m'), make([]byte, 1100))
					tx.Put(key('r'), make([]byte, 16))
					tx.Add([]byte("new"), 1)
					return nil
				},
				func(tx store.Tx) error {
					if tx.Get(key('m')) == nil {
						return fmt.Errorf("message %d is gone", id)
					}
					tx.Mint("m")
					tx.Delete(key('r'))
					tx.Put(key('c'), make([]byte, 80))
					tx.Add([]byte("new"), -1)
					tx.Add([]byte("claimed"), 1)
					return nil
				},
				func(tx store.Tx) error {
					if tx.Get(key('c')) == nil {
						return fmt.Errorf("claim %d is gone", id)
					}
					tx.Delete(key('c'))
					tx.Delete(key('m'))
					tx.Add([]byte("claimed"), -1)
					return nil
				},
			}
			for _, step := range steps {
				if err := db.Update(ctx, step); err != nil {
					b.Error(err)
				}
			}
		}
	})
	s := db.Stats()
	b.ReportMetric(float64(s.Functions)/float64(s.Commits), "functions/commit")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
}

// BenchmarkView reads a key, which lies in the log's table or in mailbox.db alone.
func BenchmarkView(b *testing.B) {
	ctx := context.Background()
	key := func(id uint64) []byte { return binary.BigEndian.AppendUint64([]byte{'m'}, id) }
	for _, moved := range []bool{false, true} {
		b.Run(fmt.Sprintf("moved=%t", moved), func(b *testing.B) {
			dir := b.TempDir()
			db, err := bolt.Open(dir, bolt.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer func() { db.Close() }()
			const n = 64
			for range n {
				if err := db.Update(ctx, threePuts(0)); err != nil {
					b.Fatal(err)
				}
			}
			if moved {
				if err := db.Close(); err != nil {
					b.Fatal(err)
				}
				if db, err = bolt.Open(dir, bolt.Options{}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			for id := uint64(1); b.Loop(); id++ {
				err := db.View(ctx, func(r store.Reader) error {
					if r.Get(key(id%n+1)) == nil {
						return fmt.Errorf("message %d is gone", id%n+1)
					}
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
