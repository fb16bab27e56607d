package bolt

import (
	"errors"
	"fmt"
	"time"
)

// This file decides, from the state of a database and the mark beside it, whether
// they belong together and how the store goes on. It does nothing itself.

// planCreation decides whether a store may be created where no database is, and
// returns the mark to create it under.
//
// A mark of generation 0 is written before a database comes into being, and the
// first opening raises it. So no database beside no mark, or beside one of
// generation 0, is a folder where nothing was ever stored.
func planCreation(dir string, m mark, markErr error, accept bool) (mark, error) {
	switch {
	case errors.Is(markErr, errNoMark):
		return mark{id: newID()}, nil
	case markErr != nil:
		return m, corruptRefusal("open the store in "+dir,
			DataFile+" is missing, and "+markErr.Error())
	case m.generation == 0:
		return m, nil
	case !accept:
		return m, rolledBackRefusal(dir, DataFile+" is missing beside its high-water mark")
	}
	return m, nil
}

// checkAge decides whether the database may be used beside the mark. See resume
// for why a younger database is right.
//
// A missing mark is refused, not healed: the mark is there before the database
// is, so somebody removed it, or put a database where none was.
func checkAge(dir string, s state, m mark, markErr error) error {
	switch {
	case markErr != nil:
		return rolledBackRefusal(dir, markErr.Error()+", so that nobody can tell whether "+DataFile+" is the newest")
	case s.id != m.id:
		return rolledBackRefusal(dir, DataFile+" is the database of another store than the high-water mark beside it")
	case s.generation < m.generation:
		return rolledBackRefusal(dir, fmt.Sprintf("%s is older than the high-water mark beside it: opened %d times, not %d",
			DataFile, s.generation, m.generation))
	case s.generation == m.generation && m.clean && s.batch < m.batch:
		return rolledBackRefusal(dir, fmt.Sprintf("%s is older than the high-water mark beside it: at commit %d, not %d",
			DataFile, s.batch, m.batch))
	}
	return nil
}

// resume returns the state with which a store goes on whose database says s and
// whose mark says m (zero if there is none).
//
// Numbers go on from the greater of the two. After a clean Close the mark is
// exact. After a crash it is up to a block ahead, and the numbers between are
// skipped: some may have been given by commits that are not in this database.
func resume(s state, m mark) state {
	s.token = max(s.token, m.token)
	s.sequence = max(s.sequence, m.sequence)
	s.generation = max(s.generation, m.generation) + 1
	s.epoch = max(s.epoch, m.epoch)
	return s
}

// begin starts a new epoch, not below least: from here on every number is greater
// than all that s knows of, and than all that could be given after them in the
// same epoch.
func (s *state) begin(least uint64) {
	s.epoch = max(s.epoch+1, least, s.known()>>epochShift+1)
	s.token, s.sequence = s.epoch<<epochShift, s.epoch<<epochShift
	for i := range s.appended {
		s.appended[i].last = s.epoch << epochShift
	}
}

// known is the greatest number that was given.
func (s *state) known() uint64 {
	n := max(s.token, s.sequence)
	for _, a := range s.appended {
		n = max(n, a.last)
	}
	return n
}

// firstHour is when the hours of leastEpoch began; lastFloor leaves room for
// epochs if the wall clock is far in the future.
var firstHour = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

const lastFloor = 1<<20 - 1<<16

// leastEpoch is the least epoch that may begin at the wall-clock time now on a
// database s beside a mark m.
//
// A mark of the same store that has seen the database's epoch has seen every
// number that was given in this folder: the next epoch will do, whatever the time.
// Without one nobody here knows which epochs others have begun on the same past:
// the same backup may have been restored in another folder that was lost since.
// Nobody begins more epochs than one an hour, nor gives 2^33 numbers in one. So
// the hours that have passed are greater than every epoch of before.
func leastEpoch(s state, m mark, markErr error, now time.Time) uint64 {
	if markErr == nil && s.id == m.id && m.epoch >= s.epoch {
		return 0
	}
	return uint64(min(max(now.Sub(firstHour)/time.Hour+1, 0), lastFloor))
}

// restored returns the state of a database that is made of a backup to take the
// place of another one. s is the backup's, m the mark in the folder, and old what
// the database there says (zero if it cannot be read).
//
// It carries the identity of the folder and is younger than the mark, so that it
// can be put in place before the mark is written anew: a crash in between leaves
// what a crash right after an opening would. Where there is no mark that can be
// read its identity is a new one: a mark for it must not fit the database before.
func restored(s, old state, m mark, markErr error, now time.Time) state {
	least := leastEpoch(s, m, markErr, now)
	if markErr != nil {
		m = mark{id: newID()}
	}
	s = resume(s, m)
	s.id, s.log = m.id, 0 // all that the backup holds is in it
	s.generation = max(s.generation, old.generation+1)
	s.instant = max(s.instant, old.instant)
	s.token = max(s.token, old.known())
	s.epoch = max(s.epoch, old.epoch)
	s.begin(least)
	return s
}
