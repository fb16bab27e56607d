package powercut_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sovereign-run/sovereign/store/bolt"
)

// confirmed is what a process says once a step is done.
type confirmed struct {
	Model    model
	Contents []string
	Given    numbers
	Mark     [32]byte // of the content of mailbox.mark
}

// P2.4, P7: a journaling file system loses its power right after a step was
// confirmed. Names that its journal had not got yet are gone; ours are there: the
// store, its mark, the compacted and the restored file.
//
// Leave syncDir out of replaceFile, create, compact or replace and this fails.
func TestPowerCut_OnExt4(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting a file system needs root")
	}
	steps := whole()
	for n := range steps {
		if (testing.Short() || raceEnabled) && n%4 != 0 {
			continue
		}
		dir, image := t.TempDir(), filepath.Join(t.TempDir(), "image")
		if err := os.WriteFile(image, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(image, 32<<20); err != nil {
			t.Fatal(err)
		}
		try := func(args ...string) {
			t.Helper()
			if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
				t.Skipf("%v: %v: %s", args, err, out)
			}
		}
		try("mkfs.ext4", "-q", "-F", image)
		try("mount", "-o", "loop", image, dir)
		said := confirm(t, dir, n)
		try("mount", "-o", "loop", image, dir)
		mark, err := os.ReadFile(filepath.Join(dir, folder, bolt.MarkFile))
		if err == nil && sha256.Sum256(mark) != said.Mark {
			err = fmt.Errorf("the mark is not the one that was confirmed")
		}
		if err == nil {
			err = check(filepath.Join(dir, folder), expectation{base: said.Model, hashes: said.Contents, given: said.Given})
		}
		if err != nil {
			t.Errorf("the power goes after %q: %v", steps[n].name, err)
		}
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	}
}

// confirm has a process make the steps up to n on the file system mounted on dir,
// cuts the power once it has said so, and unmounts. It returns what it said.
func confirm(t *testing.T, dir string, n int) (said confirmed) {
	t.Helper()
	c := command("ext4", dir, strconv.Itoa(n))
	c.Stderr = t.Output()
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &said)
	}
	if e := shutdown(dir); err == nil {
		err = e
	}
	_ = c.Process.Kill()
	_ = c.Wait()
	if e := unix.Unmount(dir, 0); err == nil {
		err = e
	}
	if err != nil {
		t.Fatal(err)
	}
	return said
}

// shutdown is the power cut of ext4: nothing more is written, not even the journal.
func shutdown(dir string) error {
	const ext4Shutdown, withoutFlush = 0x8004587d, 2
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return unix.IoctlSetPointerInt(int(d.Fd()), ext4Shutdown, withoutFlush)
}

// playUntil makes the steps of whole up to one, says so, and waits for its end.
func playUntil(args []string) error {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	w := newWorld(filepath.Join(args[0], folder))
	for _, s := range whole()[:n+1] {
		if err := s.do(context.Background(), w); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	mark, err := os.ReadFile(filepath.Join(w.h.Dir, bolt.MarkFile))
	if err != nil {
		return err
	}
	b, err := json.Marshal(confirmed{w.model, w.store.sure, w.store.given, sha256.Sum256(mark)})
	if err != nil {
		return err
	}
	fmt.Printf("%s\n", b)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}
