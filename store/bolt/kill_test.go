package bolt_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store"
	"github.com/sovereign-run/sovereign/store/bolt"
)

// traffic updates the store in args[0] from many goroutines until it is killed,
// and prints "KEY TOKEN SEQUENCE ENTRY" after each update that was confirmed.
// args[1] makes the keys of this run its own; if it is odd the log is small.
func traffic(args []string) {
	var o bolt.Options
	if run, err := strconv.Atoi(args[1]); err == nil && run%2 == 1 {
		o.LogSize = 32 << 10
	}
	db, err := bolt.Open(args[0], o)
	exitOn(err)
	for worker := range 16 {
		go func() {
			for i := 0; ; i++ {
				key := fmt.Sprintf("k%s-%d-%d", args[1], worker, i)
				var token, sequence, entry uint64
				err := db.Update(ctx, func(tx store.Tx) error {
					token, sequence = tx.Mint("r"), tx.Next()
					entry = tx.Append('l', []byte(key))
					if i%5 == 4 {
						return fmt.Errorf("not this time")
					}
					tx.Put([]byte(key), []byte(strconv.FormatUint(token, 10)))
					tx.Put(binary.BigEndian.AppendUint64([]byte("t"), token), []byte(key))
					tx.Put(binary.BigEndian.AppendUint64([]byte("s"), sequence), []byte(key))
					tx.Add([]byte("keys"), 1)
					return nil
				})
				if i%5 != 4 {
					exitOn(err)
					fmt.Printf("%s %d %d %d\n", key, token, sequence, entry)
				}
			}
		}()
	}
	select {}
}

// P4.1, P7, H1: a real SIGKILL in the middle of traffic, again and again. All that
// was confirmed is there, counters equal what they count, no number repeats, and
// the lock and the files need no repair. Skip a sync and this still passes (the
// kernel lives on); answer before the commit and it fails.
func TestUpdate_SurvivesKills(t *testing.T) {
	dir := t.TempDir()
	rounds := 15
	if testing.Short() {
		rounds = 5
	}
	seen := map[string]map[string]bool{"token": {}, "sequence": {}, "entry": {}}
	for round := range rounds {
		c := start(t, "traffic", dir, strconv.Itoa(round))
		var acks []string
		for range rand.IntN(400) + 1 {
			line := c.line()
			if line == "" {
				t.Fatalf("round %d: the child ended by itself: %v", round, c.wait())
			}
			acks = append(acks, line)
		}
		acks = append(acks, c.kill()...)

		db := open(t, dir, bolt.Options{})
		view(t, db, func(r store.Reader) {
			for _, line := range acks {
				f := strings.Fields(line)
				if got := string(r.Get([]byte(f[0]))); got != f[1] {
					t.Errorf("round %d: %s was confirmed with token %s: got %q", round, f[0], f[1], got)
				}
				for i, kind := range []string{"token", "sequence", "entry"} {
					if seen[kind][f[i+1]] {
						t.Errorf("round %d: %s %s was given twice", round, kind, f[i+1])
					}
					seen[kind][f[i+1]] = true
				}
			}
			var n [4]int64
			for i, space := range []string{"k", "t", "s", "l"} {
				r.Scan([]byte(space), nil, func(_, _ []byte) bool { n[i]++; return true })
				if sum := r.Sum([]byte("keys")); n[i] != sum {
					t.Errorf("round %d: %d keys in space %s, and the counter says %d", round, n[i], space, sum)
				}
			}
		})
		mustBeSound(t, db)
		if round%3 == 0 {
			closeStore(t, db) // else the next child finds a store that was left open
		} else {
			c := start(t, "hold", dir)
			if got := c.line(); !strings.Contains(got, string(refusal.StoreLocked)) {
				t.Errorf("round %d: a second opener got %q", round, got)
			}
			c.wait()
			closeStore(t, db)
		}
	}
}

// hold opens the store in args[0], prints what came of it, and stays until its
// input ends.
func hold(args []string) {
	db, err := bolt.Open(args[0], bolt.Options{})
	if err != nil {
		r := refusal.Of(err)
		fmt.Println(r.Category, r.Error(), "|", r.Next)
		return
	}
	fmt.Println("open", os.Getpid())
	var b [1]byte
	os.Stdin.Read(b[:])
	db.Close()
}

// A13, B4, K2: the lock is refused at once while its holder lives, naming it, and
// is free the moment that it was killed. Lock by the file's existence, or trust
// the number in it, and this fails.
func TestOpen_LockDiesWithItsHolder(t *testing.T) {
	dir := t.TempDir()
	c := start(t, "hold", dir)
	if got := c.line(); got != fmt.Sprintf("open %d", c.cmd.Process.Pid) {
		t.Fatalf("the first opener got %q", got)
	}
	for _, o := range []bolt.Options{{}, {ReadOnly: true}, {AcceptRollback: true}} {
		_, err := bolt.Open(dir, o)
		r := refusal.Of(err)
		if r == nil || r.Category != refusal.StoreLocked || !r.Retryable {
			t.Fatalf("a second opener (%+v) got %v", o, err)
		}
		if !strings.Contains(r.Why, strconv.Itoa(c.cmd.Process.Pid)) || r.Next == "" {
			t.Errorf("the refusal does not name the holder, %d: %s; %s", c.cmd.Process.Pid, r.Why, r.Next)
		}
	}
	c.kill()
	db := open(t, dir, bolt.Options{})
	closeStore(t, db)

	// A number of a process that lives and has nothing to do with it.
	if err := os.WriteFile(dir+"/"+bolt.LockFile, []byte(strconv.Itoa(os.Getppid())), 0o600); err != nil {
		t.Fatal(err)
	}
	closeStore(t, open(t, dir, bolt.Options{}))
	// And two openers within one process.
	db = open(t, dir, bolt.Options{})
	if _, err := bolt.Open(dir, bolt.Options{}); !refusal.Has(err, refusal.StoreLocked) {
		t.Errorf("a second opener in the same process got %v", err)
	}
	closeStore(t, db)
}

// die opens the store in args[0], writes through the end of a block of numbers,
// closes it, and kills itself when it has reached the step args[1].
func die(args []string) {
	o := bolt.WithSteps(bolt.Options{AcceptRollback: args[2] == "accept"}, func(step string) {
		if step == args[1] {
			suicide()
		}
	})
	db, err := bolt.Open(args[0], o)
	exitOn(err)
	err = db.Update(ctx, func(tx store.Tx) error {
		token := tx.Mint("r")
		tx.Put([]byte("k-"+args[1]), strconv.AppendUint(nil, token, 10))
		bolt.SkipTo(db, token+bolt.MarkBlock, token+bolt.MarkBlock)
		return nil
	})
	exitOn(err)
	exitOn(db.Close())
}

// P7: a crash in every gap between writing the database and writing the mark
// leaves a store that opens without a refusal, keeps what it held, and gives no
// number twice. Write the mark before the database when opening, and "database
// opened" fails; create the database before its mark, and "database named" does.
func TestOpen_CrashInEveryGap(t *testing.T) {
	for _, first := range []bool{true, false} {
		for _, step := range []string{
			"mark created", "database created", "database named",
			"database opened", "mark written", "mark moved",
			"closing state recorded", "closing mark written",
		} {
			if !first && (strings.HasPrefix(step, "database ") && step != "database opened" || step == "mark created") {
				continue
			}
			t.Run(fmt.Sprintf("%s,first=%v", step, first), func(t *testing.T) {
				dir := t.TempDir()
				var before uint64
				if !first {
					db := open(t, dir, bolt.Options{})
					update(t, db, func(tx store.Tx) { before = tx.Mint("r"); tx.Put([]byte("k"), []byte("v")) })
					closeStore(t, db)
				}
				// Twice at the same place: the second crash is on top of the first.
				for range 2 {
					if err := start(t, "die", dir, step, "no").wait(); err == nil {
						// Creation is over the second time.
						if !first {
							t.Fatalf("the child did not die at %q", step)
						}
					}
				}
				db := open(t, dir, bolt.Options{})
				defer closeStore(t, db)
				view(t, db, func(r store.Reader) {
					if !first && string(r.Get([]byte("k"))) != "v" {
						t.Error("what the store held is gone")
					}
					if v := r.Get([]byte("k-" + step)); v != nil {
						n, _ := strconv.ParseUint(string(v), 10, 64)
						before = max(before, n+bolt.MarkBlock)
					} else if strings.HasPrefix(step, "closing") {
						t.Error("what was confirmed before the crash is gone")
					}
				})
				update(t, db, func(tx store.Tx) {
					if n := tx.Mint("r"); n <= before {
						t.Errorf("token %d after %d", n, before)
					}
				})
				mustBeSound(t, db)
			})
		}
	}
}
