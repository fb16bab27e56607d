package powercut_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store"
)

// expectation is what must be found on a disk.
type expectation struct {
	base   model    // what is there for sure
	target model    // what may be there instead; nil: base only
	mixed  bool     // each message may be as in either
	hashes []string // the store's content is one of these; nil: not known
	given  numbers  // all new numbers are greater
}

// check opens the store in dir as a supervisor would, and returns all that is wrong
// with it. At the end it is closed in order, opened again, and looked at once more.
func check(dir string, want expectation) error {
	ctx := context.Background()
	w := newWorld(dir)
	wrap := w.h.Wrap
	content := ""
	w.h.Wrap = func(st store.Store) store.Store {
		content = contentOf(st)
		return wrap(st)
	}
	if err := w.h.Open(); err != nil {
		return fmt.Errorf("open: %w", err)
	}
	var errs []error
	if want.hashes != nil && !slices.Contains(want.hashes, content) {
		errs = append(errs, fmt.Errorf("the store holds %s, which is none of %v", content, want.hashes))
	}
	look := func() {
		errs = append(errs, w.h.DB.Check(ctx, func(problem error) bool {
			errs = append(errs, fmt.Errorf("check: %w", problem))
			return true
		}))
		_, err := w.h.Box.Verify(ctx, func(p mailbox.Problem) {
			errs = append(errs, fmt.Errorf("verify: %s: %s", p.Where, p.What))
		})
		errs = append(errs, err)
	}
	errs = append(errs, reconcile.do(ctx, w))
	look()
	found, err := modelOf(ctx, w.h.Box)
	errs = append(errs, err, want.compare(found))
	errs = append(errs, w.h.DB.Update(ctx, func(tx store.Tx) error {
		if token, seq := tx.Mint("any"), tx.Next(); token <= want.given.Token || seq <= want.given.Sequence {
			return fmt.Errorf("token %d and id %d are not greater than %+v", token, seq, want.given)
		}
		return nil
	}))
	if err := w.h.Close(); err != nil {
		errs = append(errs, fmt.Errorf("close: %w", err))
	}
	if err := w.h.Open(); err != nil {
		return errors.Join(append(errs, fmt.Errorf("open again: %w", err))...)
	}
	again, err := modelOf(ctx, w.h.Box)
	if err == nil && !maps.Equal(found, again) {
		err = errors.New("what was recovered is not there after a restart")
	}
	errs = append(errs, err, w.h.Close(), w.store.wrong)
	return errors.Join(errs...)
}

// modelOf is the model that a box in which nothing is claimed answers to.
func modelOf(ctx context.Context, box *mailbox.Box) (model, error) {
	found := model{}
	for f := (mailbox.Filter{Limit: 1000}); ; {
		page, err := box.List(ctx, f)
		if err != nil {
			return nil, fmt.Errorf("list: %w", err)
		}
		for _, m := range page.Messages {
			found[m.ID] = map[mailbox.State]string{mailbox.New: "N", mailbox.Done: "D", mailbox.Dead: "X", mailbox.Parked: "P", mailbox.Claimed: "C"}[m.State]
			if _, err := box.Show(ctx, m.ID); err != nil {
				return nil, fmt.Errorf("show: %w", err)
			}
		}
		if f.After = page.Next; page.Next == "" {
			return found, nil
		}
	}
}

// compare says where found is neither base nor target.
func (want expectation) compare(found model) error {
	if maps.Equal(found, want.base) || want.target != nil && maps.Equal(found, want.target) {
		return nil
	}
	var errs []error
	all := map[mailbox.ID]bool{}
	for _, m := range []model{found, want.base, want.target} {
		for id := range m {
			all[id] = true
		}
	}
	for _, id := range slices.Sorted(maps.Keys(all)) {
		target := want.base[id]
		if want.target != nil {
			target = want.target[id]
		}
		if found[id] != want.base[id] && found[id] != target || !want.mixed && want.base[id] != target {
			errs = append(errs, fmt.Errorf("%s is %q, and should be %q or %q", id, found[id], want.base[id], target))
		}
	}
	return errors.Join(errs...)
}

// isFull reports whether err is the refusal for a full disk.
func isFull(err error) bool { return refusal.Has(err, refusal.DiskFull) }
