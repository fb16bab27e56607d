package process

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// The thread that makes children holds what it was given, for as long as its work
// takes, and of all that the program has open only what Go's runtime needs: a start
// does not become dearer with the number of descriptors. Leave out the closing in part
// and this fails.
func TestSpawner_HoldsOnlyWhatItIsGiven(t *testing.T) {
	var open []*os.File
	defer func() {
		for _, f := range open {
			f.Close()
		}
	}()
	more := func() {
		for range 200 {
			f, err := os.Open(os.DevNull)
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, f)
		}
	}
	more()
	s, err := newSpawner(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.stop()
	more()
	var given []int
	var want unix.Stat_t
	for range 2*maxGiven + 1 {
		f, err := os.CreateTemp(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, f)
		given = append(given, rawFd(f))
	}
	if err := unix.Fstat(given[len(given)-1], &want); err != nil {
		t.Fatal(err)
	}
	// Bare system calls: no file of package os may be made on that thread.
	held := func() (n int) {
		for fd := range 4096 {
			if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil {
				n++
			}
		}
		return n
	}
	var idle, busy int
	var last unix.Stat_t
	if err := s.do(t.Context(), nil, func([]int) { idle = held() }); err != nil {
		t.Fatal(err)
	}
	if err := s.do(t.Context(), given, func(fds []int) {
		busy = held()
		unix.Fstat(fds[len(fds)-1], &last)
	}); err != nil {
		t.Fatal(err)
	}
	// The streams, its end of the sockets, and a poller with what wakes it for each
	// that the program has.
	if idle > 12 || busy != idle+len(given) {
		t.Errorf("%d descriptors without work, %d with %d that were given", idle, busy, len(given))
	}
	if last.Ino != want.Ino || last.Dev != want.Dev {
		t.Errorf("inode %d came for %d", last.Ino, want.Ino)
	}
	var after int
	if err := s.do(t.Context(), nil, func([]int) { after = held() }); err != nil || after != idle {
		t.Errorf("%d descriptors, then %d: %v", idle, after, err)
	}
}

// What an exec keeps comes to the numbers that it has in the program, whichever numbers
// it came under. Leave out the moving away and this fails.
func TestPlace_AnyNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const base = 700 // nobody else uses such numbers here
		n := rapid.IntRange(1, 12).Draw(t, "n")
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		got, want := random.Perm(2 * n)[:n], random.Perm(2 * n)[:n]
		for i := range n {
			fd, err := unix.MemfdCreate(fmt.Sprint(i), unix.MFD_CLOEXEC)
			if err != nil {
				t.Fatal(err)
			}
			got[i], want[i] = got[i]+base, want[i]+base
			if err := unix.Dup3(fd, got[i], unix.O_CLOEXEC); err != nil {
				t.Fatal(err)
			}
			unix.Close(fd)
		}
		defer func() {
			for _, fd := range got {
				unix.Close(fd)
			}
		}()
		if err := place(got, want); err != nil {
			t.Fatal(err)
		}
		for i, fd := range want {
			name, _ := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
			if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); got[i] != fd || name != fmt.Sprintf("/memfd:%d (deleted)", i) || flags != 0 || err != nil {
				t.Fatalf("%d is at %d as %q, flags %d, %v", fd, got[i], name, flags, err)
			}
		}
		for fd := base; fd < base+2*n; fd++ {
			used := false
			for _, w := range want {
				used = used || w == fd
			}
			if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); (err == nil) != used {
				t.Fatalf("number %d: in use %t, wanted %t", fd, err == nil, used)
			}
		}
	})
}

// Descriptors of which only some could be given leave nothing behind that the next work
// on the thread would take for its own: a child would get another's pipes. Have do not
// receive what was sent before the error, and this fails.
func TestSpawner_GivesTheNextItsOwnAfterAnError(t *testing.T) {
	s, err := newSpawner(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.stop()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	var given []int
	for range maxGiven {
		given = append(given, rawFd(null))
	}
	err = s.do(t.Context(), append(given, -1), func([]int) { t.Error("it was run without a descriptor") })
	if !errors.Is(err, unix.EBADF) {
		t.Errorf("a descriptor that is none: %v", err)
	}
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var got, want unix.Stat_t
	if err := unix.Fstat(rawFd(file), &want); err != nil {
		t.Fatal(err)
	}
	err = s.do(t.Context(), []int{rawFd(file)}, func(fds []int) { _ = unix.Fstat(fds[0], &got) })
	if err != nil || got.Ino != want.Ino || got.Dev != want.Dev {
		t.Errorf("it was given inode %d, want %d: %v", got.Ino, want.Ino, err)
	}
}
