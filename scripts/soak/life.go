package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/protocol"
)

// A Life is one process of the fleet.
type Life struct {
	folder, mode string
	generation   int
	seed         uint64
	pid          int
	actor        string
	slot         int
	lease        protocol.Token
	rec          *Recorder
	held         []*os.File // its locks
}

// live is what this program does as a process of the fleet. What is written in sh
// does not return: it becomes its shell.
func live(mode string) error {
	l, err := begin(mode)
	if err != nil {
		return err
	}
	switch mode {
	case modeTask:
		return l.task()
	case modeShell:
		return l.shell()
	}
	return errors.Join(l.work(), l.rec.Close())
}

// begin opens the log, takes the locks and writes down who it is, and what it found
// alive that should be dead.
func begin(mode string) (*Life, error) {
	l := &Life{folder: os.Getenv(envFolder), mode: mode, pid: os.Getpid(), actor: os.Getenv("SOVEREIGN_ACTOR")}
	var errs [4]error
	l.generation, errs[0] = strconv.Atoi(os.Getenv(envGeneration))
	l.seed, errs[1] = strconv.ParseUint(os.Getenv(envSeed), 10, 64)
	l.slot, errs[2] = strconv.Atoi(os.Getenv("SOVEREIGN_SLOT"))
	lease, err := strconv.ParseUint(os.Getenv("SOVEREIGN_LEASE_TOKEN"), 10, 53)
	l.lease, errs[3] = protocol.Token(lease), err
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("this is a part of a soak run: %w", err)
	}
	process := fence.Process(os.Getenv("SOVEREIGN_PROCESS")).Short()
	l.rec, err = openRecorder(filepath.Join(l.folder, "logs", fmt.Sprintf("%s-%d-%s.jsonl", l.actor, l.slot, process)))
	if err != nil {
		return nil, err
	}
	who := Line{Generation: l.generation, PID: l.pid, Actor: l.actor, Slot: l.slot, Process: process, Lease: l.lease}
	say := func(kind, why string) {
		line := who
		line.Kind, line.Why = kind, why
		l.rec.Note(line)
	}
	free, err := l.hold(slotLock(l.folder, l.actor, l.slot), true)
	if err != nil {
		return nil, err
	}
	if !free {
		say(kindOverlap, "the lock of the slot is held")
	}
	if _, err := l.hold(generationLock(l.folder, l.generation), false); err != nil {
		return nil, err
	}
	for g := 1; g < l.generation; g++ {
		held, err := isLocked(generationLock(l.folder, g))
		if err != nil {
			return nil, err
		}
		if held {
			say(kindSurvivor, fmt.Sprintf("supervisor %d has left something that lives", g))
		}
	}
	say(kindBegin, "")
	return l, nil
}

// behave is what is to be done with an attempt. Towards the end of a run nothing is
// held up.
func (l *Life) behave(nonce string, attempt int) Behaviour {
	b := behave(l.seed, nonce, attempt, l.mode)
	if os.Getenv(envCalm) != "" {
		b = b.calmed()
	}
	return b
}

// hold takes a lock for as long as this process, or anything that inherits from
// it, is alive.
func (l *Life) hold(path string, alone bool) (bool, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return false, err
	}
	free, err := lockWhole(f, alone)
	if err == nil {
		err = inherit(f)
	}
	l.held = append(l.held, f)
	return free, err
}

func slotLock(folder, actor string, slot int) string {
	return filepath.Join(folder, "locks", fmt.Sprintf("%s-%d", actor, slot))
}

func generationLock(folder string, generation int) string {
	return filepath.Join(folder, "locks", fmt.Sprintf("generation-%d", generation))
}
