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
