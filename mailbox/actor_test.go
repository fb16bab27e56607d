package mailbox

import (
	"testing"

	"github.com/sovereign-run/sovereign/refusal"
)

// everyActor has a value of its own in each field.
var everyActor = Actor{Name: "work", Mailbox: true, ClaimTTL: 1, Timeout: 2, Progress: 3, Auto: true,
	Retry: Retry{MaxAttempts: 4, Initial: 5, Max: 6, Factor: 1.5, Jitter: 0.5}, Park: true,
	Retention: Retention{Done: 7, Dead: 8, Events: 9, DoneCount: 10, DeadCount: 11, EventsCount: 12},
	Limit:     13, MaxBody: 14, Reclaim: "always", Removed: true, Stopped: true, Paused: true}

const (
	storedEvery = `{"Version":1,` + everyField
	// A record from before there was a version.
	storedBefore = `{` + everyField
	everyField   = `"Name":"work","Mailbox":true,"ClaimTTL":1,"Timeout":2,"Progress":3,"Auto":true,` +
		`"Retry":{"MaxAttempts":4,"Initial":5,"Max":6,"Factor":1.5,"Jitter":0.5},"Park":true,` +
		`"Retention":{"Done":7,"Dead":8,"Events":9,"DoneCount":10,"DeadCount":11,"EventsCount":12},` +
		`"Limit":13,"MaxBody":14,"Reclaim":"always","Removed":true,"Stopped":true,"Paused":true}`
)

// An actor's record keeps its form: rename a field on disk and this fails, as a
// policy on record would be reset in silence.
func TestActor_StoredForm(t *testing.T) {
	got, err := everyActor.encode()
	if err != nil || string(got) != storedEvery {
		t.Errorf("stored as %s, %v", got, err)
	}
	for _, stored := range []string{storedEvery, storedBefore} {
		if back, err := decodeActor("work", []byte(stored)); err != nil || back != everyActor {
			t.Errorf("%s reads as %+v, %v", stored, back, err)
		}
	}
	for _, damaged := range []string{"", "{", `{"Name":"other"}`, `{"Version":2,"Name":"work"}`, `{"Version":0,"Name":"work"}`, `{"Name":"work","Timeout":"1s"}`} {
		if _, err := decodeActor("work", []byte(damaged)); !refusal.Has(err, refusal.StoreCorrupt) {
			t.Errorf("%s is read: %v", damaged, err)
		}
	}
}
