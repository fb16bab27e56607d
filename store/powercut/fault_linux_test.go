package powercut_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store/powercut/lazyfs"
)

// P4.10: a sync fails, any of them, and what it was to sync is lost or stored. The
// store says that the outcome is unknown, and nothing but that from then on; or it
// has proof that nothing is stored. Opened again everything acknowledged is there
// and nothing is half done, and so it is when the power goes after that.
//
// By default each sync fails in one of the two ways, both syncs of a transaction in
// the same one; with POWERCUT_EVERY in the environment, in both.
//
// Go on after a failed sync and this fails.
func TestFailedSync_OfEveryKind(t *testing.T) {
	for _, how := range []string{"lost", "stored"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			d := mount(t)
			said, killed := run(t, "script", d.dir)
			if said != "" || !killed {
				t.Fatalf("the script did not come to its end: %s", said)
			}
			log := d.log(t)
			name := filepath.Join(t.TempDir(), "models")
			if err := lazyfs.Save(name, modelsOf(t, log)); err != nil {
				t.Fatal(err)
			}
			stride := 1
			if testing.Short() || raceEnabled {
				stride = 9
			}
			const share = 24 // syncs between two power cuts
			total := 0
			for from := 1; ; from += share * stride {
				d.ask(t, "load "+emptyImage(t))
				found := filepath.Join(t.TempDir(), "found")
				said, _ := run(t, "eio", d.dir, how, strconv.Itoa(from), strconv.Itoa(share), strconv.Itoa(stride), name, found)
				done, problems, _ := strings.Cut(said, "\n")
				if problems != "" {
					t.Errorf("%s", problems)
				}
				n, err := strconv.Atoi(done)
				if err != nil {
					t.Fatal(said)
				}
				total += n
				d.ask(t, "cut none")
				if said, _ := run(t, "check", d.dir, found); said != "" {
					t.Errorf("after the power went: %s", said)
				}
				if n < share {
					break
				}
			}
			t.Logf("%d syncs looked at", total)
		})
	}
}

func emptyImage(t *testing.T) string {
	name := filepath.Join(t.TempDir(), "image")
	if err := lazyfs.Save(name, lazyfs.Image{}); err != nil {
		t.Fatal(err)
	}
	return name
}

// every asks for both lies of a disk about each sync, and for more subsets of sectors.
var every = os.Getenv("POWERCUT_EVERY") != ""

// modelsOf returns the model after each step of the script.
func modelsOf(t *testing.T, log []lazyfs.Op) (all []model) {
	t.Helper()
	for _, op := range log {
		if s, ok := strings.CutPrefix(op.Name, "end "); ok && op.Kind == lazyfs.Note {
			m := model{}
			if err := json.Unmarshal([]byte(s), &m); err != nil {
				t.Fatal(err)
			}
			all = append(all, m)
		}
	}
	return all
}

// playFailedSyncs plays the script with one sync failing, then anew with the next
// one, and so on. It writes how many there were, and what is wrong.
func playFailedSyncs(args []string) error {
	dir, how := args[0], args[1]
	from, _ := strconv.Atoi(args[2])
	share, _ := strconv.Atoi(args[3])
	stride, _ := strconv.Atoi(args[4])
	var models []model
	if err := lazyfs.Load(args[5], &models); err != nil {
		return err
	}
	// What was recovered must be there after the power goes.
	found := map[string]model{}
	var problems []string
	n := 0
	for ; n < share; n++ {
		at := from + n*stride
		if !every && (at/2%2 == 0) != (how == "lost") {
			continue
		}
		name := fmt.Sprint("sync", at)
		fired, m, err := failSync(dir, filepath.Join(dir, name), at, how, models)
		if err != nil {
			problems = append(problems, fmt.Sprintf("sync %d %s: %v", at, how, err))
		}
		if !fired {
			break
		}
		found[name] = m
	}
	fmt.Printf("%d\n%s", n, strings.Join(problems, "\n"))
	return lazyfs.Save(args[6], found)
}

// failSync plays the script with the n-th sync failing, and looks at what it does.
// It returns what was recovered then.
func failSync(disk, dir string, n int, how string, models []model) (fired bool, found model, err error) {
	ctx := context.Background()
	w := newWorld(dir)
	w.store.blind = true
	if err := lazyfs.Tell(disk, fmt.Sprintf("eio %d %s", n, how)); err != nil {
		return false, nil, err
	}
	base, want := model{}, expectation{}
	for i, s := range script() {
		err := s.do(ctx, w)
		fired, e := lazyfs.Fired(disk)
		if e != nil {
			return false, nil, e
		}
		if !fired {
			if err != nil {
				return false, nil, fmt.Errorf("%s: %w", s.name, err)
			}
			base = models[i]
			continue
		}
		want = expectation{base: base, target: models[i], mixed: s.several}
		if err := lazyfs.Tell(disk, "clear"); err != nil {
			return true, nil, err
		}
		var errs []error
		isOpen := w.h.Box != nil && s.name != "open" && s.name != "close"
		if err == nil && isOpen {
			// It was a checkpoint's, beside or behind what was confirmed.
			want = expectation{base: models[i]}
			select {
			case <-w.h.DB.Failed():
				err = w.h.Box.Record(ctx, mailbox.Event{Kind: "any"})
			case <-time.After(10 * time.Minute):
			}
		}
		switch {
		case err == nil && s.name == "close":
			// The checkpoint's that it waits for: then it leaves the mark of a store
			// in use, and the log.
			want = expectation{base: models[i]}
		case err == nil:
			errs = append(errs, fmt.Errorf("%s: nobody was told", s.name))
		case isOpen && refusal.Has(err, refusal.OutcomeUnknown):
			select {
			case <-w.h.DB.Failed():
			default:
				errs = append(errs, fmt.Errorf("%s: the store has not failed", s.name))
			}
			if err := w.h.Box.Record(ctx, mailbox.Event{Kind: "any"}); !refusal.Has(err, refusal.OutcomeUnknown) {
				errs = append(errs, fmt.Errorf("%s: then another update: %w", s.name, err))
			}
		case isOpen && refusal.Has(err, refusal.Failed):
			want.target = nil // it says that nothing is stored
			if s.several {
				want.target = models[i]
			}
		case isOpen:
			errs = append(errs, fmt.Errorf("%s: it is refused as something else: %w", s.name, err))
		}
		if isOpen {
			_ = w.h.Close()
		}
		found, err := recoverIn(ctx, dir, want)
		return true, found, errors.Join(append(errs, err)...)
	}
	return false, nil, nil
}

// recoverIn opens the store in dir, recovers, compares, and closes it.
func recoverIn(ctx context.Context, dir string, want expectation) (found model, err error) {
	w := newWorld(dir)
	w.store.blind = true
	if err := w.h.Open(); err != nil {
		return nil, fmt.Errorf("open again: %w", err)
	}
	if err := reconcile.do(ctx, w); err != nil {
		return nil, err
	}
	if found, err = modelOf(ctx, w.h.Box); err != nil {
		return nil, err
	}
	return found, errors.Join(want.compare(found), w.h.Close())
}

// checkFolders checks the stores that playFailedSyncs has left, and writes what is
// wrong.
func checkFolders(args []string) error {
	var found map[string]model
	if err := lazyfs.Load(args[1], &found); err != nil {
		return err
	}
	for name, m := range found {
		if err := check(filepath.Join(args[0], name), expectation{base: m}); err != nil {
			fmt.Printf("%s: %v\n", name, err)
		}
	}
	return nil
}

// The disk is full, from any write of any step on. Sends and claims are refused,
// disk_full, and nothing is changed by that; the end of work goes through by what
// is kept for it; nothing is lost; and everything goes through once there is room
// (the refused step is made again, and the script goes on).
func TestFullDisk_AtEveryWrite(t *testing.T) {
	d := mount(t)
	said, _ := run(t, "full", d.dir)
	last, problems, _ := strings.Cut(said, "\n")
	if problems != "" {
		t.Error(problems)
	}
	t.Log(last)
}

// playFullDisk makes each step of the script with the disk full from its first
// write on, then from its second, and so on, until it succeeds.
func playFullDisk(args []string) error {
	ctx := context.Background()
	w := newWorld(filepath.Join(args[0], folder))
	var problems []string
	refused := 0
	for _, s := range script() {
		wrong := func(format string, args ...any) {
			problems = append(problems, s.name+": "+fmt.Sprintf(format, args...))
		}
		for n := 1; ; n++ {
			if err := lazyfs.Tell(args[0], fmt.Sprintf("full %d", n)); err != nil {
				return err
			}
			err := s.do(ctx, w)
			fired, e := lazyfs.Fired(args[0])
			if e = errors.Join(e, lazyfs.Tell(args[0], "clear")); e != nil {
				return e
			}
			if err == nil {
				if s.essential && n > 1 {
					wrong("refused with the disk full from write %d on", n-1)
				}
				break
			}
			refused++
			switch {
			case !fired:
				return fmt.Errorf("%s: %w", s.name, err)
			case !isFull(err):
				wrong("full at write %d: %v", n, err)
			}
			if w.store.wrong != nil {
				wrong("full at write %d: %v", n, w.store.wrong)
				w.store.wrong = nil
			}
			if s.name == "close" {
				break // it is closed all the same
			}
			if s.name == "open" {
				continue
			}
			select {
			case <-w.h.DB.Failed():
				return fmt.Errorf("%s: full at write %d: the store has failed: %w", s.name, n, err)
			default:
			}
			if n > 100 {
				return fmt.Errorf("%s: still refused: %w", s.name, err)
			}
		}
	}
	want := expectation{base: w.model, given: w.store.given}
	if err := w.h.Close(); err != nil {
		problems = append(problems, "close: "+err.Error())
	}
	if err := check(filepath.Join(args[0], folder), want); err != nil {
		problems = append(problems, err.Error())
	}
	fmt.Printf("%d refusals\n%s", refused, strings.Join(problems, "\n"))
	_ = os.Stdout.Sync()
	return nil
}
