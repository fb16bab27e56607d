package bolt_test

import (
	"os"
	"testing"

	"github.com/sovereign-run/sovereign/store/bolt"
)

// Every file that a store makes is one that it owns, whose name a backup may not take, also
// while it is being written. Leave one out of Owns, and this fails.
func TestOwns_WhatAStoreMakes(t *testing.T) {
	dir := t.TempDir()
	see := func(string) {
		t.Helper()
		made, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range made {
			if !bolt.Owns(f.Name()) {
				t.Errorf("%s is none of the store's", f.Name())
			}
		}
	}
	db := open(t, dir, bolt.WithSteps(bolt.Options{}, see))
	see("")
	closeStore(t, db)
	see("")
	if bolt.Owns("backup.db") || bolt.Owns("mailbox.db.unreadable") {
		t.Error("what a person may remove is taken for the store's")
	}
}
