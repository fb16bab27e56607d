package main

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// What is passed to lives by way of the supervisor's environment.
const (
	envFolder     = "KILLS_FOLDER"
	envGeneration = "KILLS_GENERATION"
	envSeed       = "KILLS_SEED"
	envBinary     = "KILLS_BINARY"
)

// lifeArgument is the first argument of this program where it is a process of the
// fleet. The second one is its mode.
const lifeArgument = "life"

// tree is what each life starts before it works: three deep, and in every hiding.
const tree = `
setsid sh -c 'trap "" TERM; setsid sh -c "trap \"\" TERM; while :; do sleep 1000; done" & (sleep 1000 &); while :; do sleep 1000; done' &
(setsid sh -c 'sleep 1000 & kill -STOP $$' &)
sh -c 'trap "" TERM; (setsid sleep 1000 &); while :; do sleep 1000; done' &
`

// works is what a life does then, by its mode.
var works = map[string]string{
	"task":   `cat >/dev/null; sleep "$WORK"; exit 1`,
	"worker": `eval "$("$KILLS_BINARY" claim --wait 1h --shell)"; sleep "$WORK"; "$KILLS_BINARY" fail again; exit 1`,
	"daemon": `sleep "$WORK"; exit 1`,
}

// live is what this program does as a process of the fleet: it takes its locks, writes
// down what it finds, and becomes a shell that keeps them.
func live(mode string) error {
	folder, slot := os.Getenv(envFolder), os.Getenv("SOVEREIGN_ACTOR")+"."+os.Getenv("SOVEREIGN_SLOT")
	generation, err := strconv.Atoi(os.Getenv(envGeneration))
	if err != nil {
		return err
	}
	who := fmt.Sprintf("%s of supervisor %d, lease %s, pid %d", slot, generation, os.Getenv("SOVEREIGN_LEASE_TOKEN"), os.Getpid())
	records, err := os.OpenFile(filepath.Join(folder, "lives"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	say := func(what string) { // one write, so that lines are whole
		if _, failed := records.WriteString(what + " " + who + "\n"); failed != nil {
			err = errors.Join(err, failed)
		}
	}
	free, failed := hold(filepath.Join(folder, "slot."+slot), unix.F_WRLCK)
	if failed != nil {
		return failed
	}
	if !free {
		say("overlap")
	}
	if _, err := hold(lockOf(folder, generation), unix.F_RDLCK); err != nil {
		return err
	}
	for g := range generation {
		held, err := isHeld(lockOf(folder, g))
		if err != nil {
			return err
		}
		if held {
			say(fmt.Sprintf("survivor of %d beside", g))
		}
	}
	say("begin")
	if err != nil {
		return err
	}
	work := "WORK=" + strconv.FormatFloat(chance(os.Getenv(envSeed), slot, os.Getenv("SOVEREIGN_LEASE_TOKEN")).ExpFloat64()/6, 'f', 3, 64)
	return syscall.Exec("/bin/sh", []string{"sh", "-c", tree + works[mode]}, append(os.Environ(), work))
}

// chance is what decides for those who are called so.
func chance(names ...string) *rand.Rand {
	h := fnv.New64a()
	for _, name := range names {
		io.WriteString(h, name+"\x00")
	}
	return rand.New(rand.NewPCG(h.Sum64(), 0))
}

func lockOf(folder string, generation int) string {
	return filepath.Join(folder, "supervisor."+strconv.Itoa(generation))
}

// hold locks a file for as long as this process, or any that inherits from it, lives:
// the lock is of the open file, and ends with the last copy of its descriptor.
func hold(path string, kind int16) (free bool, err error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT, 0o600) // without close-on-exec
	if err != nil {
		return false, fmt.Errorf("open %s: %w", path, err)
	}
	err = unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &unix.Flock_t{Type: kind, Whence: io.SeekStart})
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return false, nil
	}
	return err == nil, err
}

// isHeld says whether anybody holds a lock on the file at path. It takes none.
func isHeld(path string) (bool, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &lock); err != nil {
		return false, fmt.Errorf("ask for locks of %s: %w", path, err)
	}
	return lock.Type != unix.F_UNLCK, nil
}
