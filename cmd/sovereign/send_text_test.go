package main

import (
	"testing"

	"github.com/sovereign-run/sovereign/refusal"
)

// An argument that is not UTF-8 would be another one once it is written as JSON, and
// two keys one: it is refused before. Leave out isText and this fails.
func TestSend_RefusesArgumentsThatAreNotUTF8(t *testing.T) {
	const bad = "\xff"
	for name, o := range map[string]sendOptions{
		"key": {key: bad}, "group": {group: bad}, "subject": {subject: bad}, "from": {from: bad},
		"header": {headers: headers{"a": bad}}, "header name": {headers: headers{bad: "a"}},
	} {
		if err := o.possible(place{}, nil, []string{"a"}); !refusal.Has(err, refusal.BadRequest) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := (sendOptions{key: "\ufffdé"}).possible(place{}, nil, []string{"a"}); err != nil {
		t.Error(err)
	}
}
