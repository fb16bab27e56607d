package wal_test

import (
	"fmt"
	"path/filepath"
	"testing"
)

// One record and its sync, in a file that has its room already, as the log of a store has.
func BenchmarkAppend(b *testing.B) {
	const full = 2 << 20
	for _, size := range []int{400, 20 << 10} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			f := open(b, filepath.Join(b.TempDir(), "log"))
			defer f.Close()
			if err := f.Grow(full * 3 / 2); err != nil {
				b.Fatal(err)
			}
			payload := record(make([]byte, size))
			salt := uint64(0)
			b.ReportAllocs()
			for number := uint64(1); b.Loop(); number++ {
				if salt == 0 || f.Len() > full {
					salt++
					if err := f.Begin(salt, number, record(nil)); err != nil {
						b.Fatal(err)
					}
					number++
				}
				if err := f.Append(number, payload); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
