package bolt_test

import (
	"testing"

	"github.com/sovereign-run/sovereign/store"
	"github.com/sovereign-run/sovereign/store/bolt"
	"github.com/sovereign-run/sovereign/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, storetest.Factory{
		Open: func(dir string) (store.Store, error) { return bolt.Open(dir, bolt.Options{}) },
	})
}

// With a log that is full after a few commits, and that large ones do not fit in.
func TestStore_OfASmallLog(t *testing.T) {
	storetest.Run(t, storetest.Factory{
		Open: func(dir string) (store.Store, error) { return bolt.Open(dir, bolt.Options{LogSize: 2 << 10}) },
	})
}
