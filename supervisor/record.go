package supervisor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/supervisor/process"
)

// A record says which process hosts a slot, towards the operating system, so that
// the next supervisor can end it if this one is killed. It has to outlive the
// supervisor and not the machine, after whose restart no process is left: it is
// not synced.
type record struct {
	Process  fence.Process    `json:"process"`
	Identity process.Identity `json:"identity"`
	Cgroup   string           `json:"cgroup,omitempty"`
}

// recordSize is the size of a record's file: it is written by one write over the
// whole of what was there, so that a kill leaves the old or the new one.
const recordSize = 1024

// records is the folder of the records, one file for each slot.
type records string

func (r records) path(slot fence.Slot) string {
	return filepath.Join(string(r), fmt.Sprintf("%s.%d", slot.Actor, slot.Number))
}

// put records who hosts slot.
func (r records) put(slot fence.Slot, rec record) error {
	text, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	if len(text) > recordSize {
		return fmt.Errorf("record the process of %s: %d bytes are too many", slot, len(text))
	}
	f, err := r.open(slot)
	if errors.Is(err, fs.ErrNotExist) { // somebody removed the folder
		if err = os.MkdirAll(string(r), 0o700); err == nil {
			f, err = r.open(slot)
		}
	}
	if err != nil {
		return fmt.Errorf("record the process of %s: %w", slot, err)
	}
	defer f.Close()
	if _, err := f.Write(append(text, bytes.Repeat([]byte("\n"), recordSize-len(text))...)); err != nil {
		return fmt.Errorf("record the process of %s: %w", slot, err)
	}
	return nil
}

// open opens the file of slot for writing, never through a link that somebody put there.
func (r records) open(slot fence.Slot) (*os.File, error) {
	return os.OpenFile(r.path(slot), os.O_WRONLY|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
}

// drop removes the record of slot; nothing hosts it.
func (r records) drop(slot fence.Slot) { _ = os.Remove(r.path(slot)) }

// all returns every record. damaged are the files that hold none: a kill, or a
// power cut, came while one was written. The lease on record tells of its process
// too.
func (r records) all() (found map[fence.Slot]record, damaged []damagedRecord, err error) {
	entries, err := os.ReadDir(string(r))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read the records of processes: %w", err)
	}
	found = map[fence.Slot]record{}
	for _, e := range entries {
		path := filepath.Join(string(r), e.Name())
		actor, number, _ := cutLast(e.Name())
		n, why := strconv.Atoi(number)
		var rec record
		if why == nil && e.Type().IsRegular() {
			text, err := readRecord(path)
			if err != nil {
				return nil, nil, fmt.Errorf("read the record of a process: %w", err)
			}
			rec, why = parseRecord(text)
		} else if why == nil {
			why = errors.New("it is no file")
		}
		if why != nil {
			damaged = append(damaged, damagedRecord{path, why})
			continue
		}
		found[fence.Slot{Actor: actor, Number: n}] = rec
	}
	return found, damaged, nil
}

// A damagedRecord is a file that holds no record.
type damagedRecord struct {
	path string
	why  error
}

// readRecord reads no more of a file than a record may have.
func readRecord(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, recordSize+1))
}

func parseRecord(text []byte) (rec record, err error) {
	if err := json.Unmarshal(text, &rec); err != nil {
		return record{}, err
	}
	if rec.Process == "" {
		return record{}, errors.New("it names no process")
	}
	return rec, nil
}

// cutLast cuts name at its last dot.
func cutLast(name string) (before, after string, ok bool) {
	i := strings.LastIndexByte(name, '.')
	if i < 0 {
		return name, "", false
	}
	return name[:i], name[i+1:], true
}
