package bolt

import (
	"errors"
	"fmt"
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
func resume(s state, m mark, newEpoch bool) state {
	s.token = max(s.token, m.token)
	s.sequence = max(s.sequence, m.sequence)
	s.generation = max(s.generation, m.generation) + 1
	if newEpoch {
		known := max(s.token, s.sequence)
		for _, a := range s.appended {
			known = max(known, a.last)
		}
		s.epoch = max(s.epoch, m.epoch, known>>epochShift) + 1
		s.token, s.sequence = s.epoch<<epochShift, s.epoch<<epochShift
		for i := range s.appended {
			s.appended[i].last = s.epoch << epochShift
		}
	}
	return s
}
