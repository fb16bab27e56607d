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

	"github.com/sovereign-run/sovereign/mailbox/mailboxtest"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store/powercut/lazyfs"
)

// P4.10: a sync fails, and what it was to sync is lost, while the kernel goes on
// showing it. The store is opened again, and then the power goes, at any operation
// of that: what was acknowledged is there still.
//
// Take dropCache out of bolt.Open and this fails: the first commit of the new run
// then overwrites pages that the disk's own newest state is made of.
func TestFailedSync_ThenPowerCut(t *testing.T) {
	d := mount(t)
	if said, killed := run(t, "script", d.dir); said != "" || !killed {
		t.Fatalf("the script did not come to its end: %s", said)
	}
	log := d.log(t)
	models := modelsOf(t, log)
	first := 0 // sync after the opening
	for _, op := range log {
		if op.Kind == lazyfs.Sync {
			first++
		}
		if op.Kind == lazyfs.Note && strings.HasPrefix(op.Name, "end ") {
			break
		}
	}
	stride := 40
	if testing.Short() || raceEnabled {
		stride = 120
	}
	for sync := first + 1; ; sync += stride + 1 { // odd, so that it meets both syncs of transactions
		d.ask(t, "load "+emptyImage(t))
		said, killed := run(t, "twice", d.dir, strconv.Itoa(sync))
		if said == "done" {
			return
		}
		if !killed {
			t.Fatal(said)
		}
		twice(t, d.log(t), models, uint64(sync))
	}
}

// twice checks every cut in log after the sync that failed.
func twice(t *testing.T, log []lazyfs.Op, models []model, seed uint64) {
	t.Helper()
	work, now, failed := mailboxtest.Dir(t), expectation{}, false
	disk := lazyfs.NewDisk(nil)
	for n := 0; ; n++ {
		if failed && (n == len(log) || log[n].Kind != lazyfs.Note) {
			for i, keep := range []lazyfs.Keep{lazyfs.None, lazyfs.Some(seed<<20 | uint64(n)), lazyfs.All} {
				dir := filepath.Join(work, fmt.Sprint(n, "-", i))
				if err := os.Mkdir(dir, 0o700); err != nil {
					t.Fatal(err)
				}
				if err := disk.Cut(keep).Write(dir); err != nil {
					t.Fatal(err)
				}
				if err := check(filepath.Join(dir, folder), now); err != nil {
					t.Fatalf("sync %d failed, cut after operation %d of %d, keeping %d:\n%v\nafter: %s", seed, n, len(log), i, err, tail(log[:n]))
				}
				if err := os.RemoveAll(dir); err != nil {
					t.Fatal(err)
				}
			}
		}
		if n == len(log) {
			return
		}
		disk.Apply(log[n])
		if log[n].Kind != lazyfs.Note {
			continue
		}
		what, rest, _ := strings.Cut(log[n].Name, " ")
		switch what {
		case "failed":
			step, err := strconv.Atoi(rest)
			if err != nil {
				t.Fatal(err)
			}
			failed, now = true, expectation{base: models[step-1], target: models[step], mixed: script()[step].several}
		case "recovered":
			now = expectation{}
			if err := json.Unmarshal([]byte(rest), &now.base); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// playTwice plays the script until its n-th sync fails, and recovers.
func playTwice(args []string) error {
	ctx, disk := context.Background(), args[0]
	w := newWorld(filepath.Join(disk, folder))
	w.store.blind = true
	if err := lazyfs.Tell(disk, "eio "+args[1]+" lost"); err != nil {
		return err
	}
	for i, s := range script() {
		err := s.do(ctx, w)
		if fired, e := lazyfs.Fired(disk); e != nil {
			return e
		} else if !fired {
			continue
		}
		if err == nil && s.name != "close" {
			<-w.h.DB.Failed() // a checkpoint's
		}
		err = errors.Join(lazyfs.Tell(disk, "clear"), lazyfs.Tell(disk, fmt.Sprint("note failed ", i)))
		if err != nil {
			return err
		}
		if s.name != "open" && s.name != "close" {
			if err := w.h.Close(); err != nil && !refusal.Has(err, refusal.OutcomeUnknown) {
				return err
			}
		}
		w := newWorld(w.h.Dir)
		w.store.blind = true
		if err := w.h.Open(); err != nil {
			return err
		}
		if err := reconcile.do(ctx, w); err != nil {
			return err
		}
		found, err := modelOf(ctx, w.h.Box)
		if err != nil {
			return err
		}
		b, err := json.Marshal(found)
		if err != nil {
			return err
		}
		if err := lazyfs.Tell(disk, "note recovered "+string(b)); err != nil {
			return err
		}
		if err := w.h.Close(); err != nil {
			return err
		}
		kill()
	}
	fmt.Print("done")
	return nil
}
