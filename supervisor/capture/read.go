package capture

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
)

// A Query says which lines to read.
type Query struct {
	Actor string
	Slot  int // 0 = all
	Lines int // how many of the last lines; -1 = all that is kept
}

// Last calls emit with the last lines of the query, oldest first, over rotated
// files as well. It ends at the first error of emit and returns it. An actor
// without logs has none. It needs no supervisor, and none minds.
func Last(dir string, q Query, emit func(Line) error) error {
	readers, err := openReaders(dir, q)
	if err != nil {
		return err
	}
	defer closeReaders(readers)
	return lastOf(readers, q.Lines, emit)
}

// lastOf merges what the readers have now, by time, and emits the last n lines.
func lastOf(readers []*reader, n int, emit func(Line) error) error {
	if n < 0 {
		return merge(readers, emit)
	}
	var kept []Line // the last n
	err := merge(readers, func(l Line) error {
		l.Text = slices.Clone(l.Text)
		kept = append(kept, l)
		if len(kept) > n {
			kept = slices.Delete(kept, 0, len(kept)-n)
		}
		return nil
	})
	for _, l := range kept {
		if err == nil {
			err = emit(l)
		}
	}
	return err
}

// merge emits the readers' lines by time until none has more. A line of unknown
// time stays behind the one before it in its file.
func merge(readers []*reader, emit func(Line) error) error {
	heads := make([]*Line, len(readers))
	for i, r := range readers {
		heads[i] = r.head()
	}
	for {
		first := -1
		for i, h := range heads {
			if h != nil && (first < 0 || h.Time.Before(heads[first].Time)) {
				first = i
			}
		}
		if first < 0 {
			return firstError(readers)
		}
		if err := emit(*heads[first]); err != nil {
			return err
		}
		heads[first] = readers[first].head()
	}
}

func firstError(readers []*reader) error {
	for _, r := range readers {
		if r.err != nil {
			return r.err
		}
	}
	return nil
}

// openReaders makes a reader for each slot, placed so that it has at least the
// wanted number of lines before it, where there are so many.
func openReaders(dir string, q Query) ([]*reader, error) {
	slots, oldest, err := slotsOf(dir, q)
	if err != nil {
		return nil, err
	}
	var readers []*reader
	for _, slot := range slots {
		r := &reader{path: Path(dir, q.Actor, slot), actor: q.Actor, slot: slot}
		if err := r.place(q.Lines, oldest[slot]); err != nil {
			closeReaders(readers)
			return nil, err
		}
		readers = append(readers, r)
	}
	return readers, nil
}

func closeReaders(readers []*reader) {
	for _, r := range readers {
		r.close()
	}
}

// slotsOf are the slots of the query with a log file, in order, and the number of the
// oldest file of each.
func slotsOf(dir string, q Query) (slots []int, oldest map[int]int, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	oldest = map[int]int{}
	for _, e := range entries {
		current, number := unrotated(e.Name())
		slot, ok := slotOf(current, q.Actor)
		if !ok || q.Slot != 0 && q.Slot != slot {
			continue
		}
		if number == 0 {
			slots = append(slots, slot)
		}
		oldest[slot] = max(oldest[slot], number)
	}
	slices.Sort(slots)
	return slots, oldest, nil
}

// slotOf reads the slot from "ACTOR.SLOT.log".
func slotOf(name, actor string) (int, bool) {
	rest, ok := strings.CutPrefix(name, actor+".")
	if !ok {
		return 0, false
	}
	number, ok := strings.CutSuffix(rest, ".log")
	slot, err := strconv.Atoi(number)
	return slot, ok && err == nil && slot > 0 && strconv.Itoa(slot) == number
}
