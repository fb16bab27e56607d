package server

import (
	"testing"

	"github.com/sovereign-run/sovereign/mailbox"
)

// P3.3, mistake 18: a claim is released when no answer brought it, and only then,
// in whatever order the answers of a request and of its repeats are written or
// lost. Let leave forget delivered and this fails.
func TestGiven_ReleasesWhatNobodyGot(t *testing.T) {
	fresh := mailbox.Delivery{ID: 1, Token: 2}
	again := mailbox.Delivery{ID: 1, Token: 2, Again: true}
	type step struct {
		enter *mailbox.Delivery
		leave *mailbox.Delivery
		sent  bool
		want  bool
	}
	for name, steps := range map[string][]step{
		"its only answer is lost":         {{enter: &fresh}, {leave: &fresh, want: true}},
		"its only answer is written":      {{enter: &fresh}, {leave: &fresh, sent: true}},
		"written, and a repeat is lost":   {{enter: &fresh}, {leave: &fresh, sent: true}, {enter: &again}, {leave: &again}},
		"the repeat comes first":          {{enter: &fresh}, {enter: &again}, {leave: &again, sent: true}, {leave: &fresh}},
		"the repeat is lost, then it too": {{enter: &fresh}, {enter: &again}, {leave: &again}, {leave: &fresh, want: true}},
		"it is lost, the repeat arrives":  {{enter: &fresh}, {enter: &again}, {leave: &fresh}, {leave: &again, sent: true}},
	} {
		var g given
		for i, s := range steps {
			if s.enter != nil {
				g.enter(*s.enter)
				continue
			}
			if got := g.leave(*s.leave, s.sent); got != s.want {
				t.Errorf("%s, step %d: nobody has it: %v", name, i, got)
			}
		}
		if len(g.claims) != 0 {
			t.Errorf("%s: %d claims are still remembered", name, len(g.claims))
		}
	}
}
