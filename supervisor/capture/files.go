package capture

import "sync"

// Files bounds how many logs have their files open at one time. Up to half of them may
// stay open while there is nothing to write; the others are closed then, and opened anew
// for the next output. nil = there is no bound.
type Files struct {
	mu    sync.Mutex
	most  int                // mu guards
	open  int                // mu guards; logs that have their files open
	idle  map[*file]struct{} // mu guards; those of them that may stay so
	given chan struct{}      // mu guards; closed when there may be room; nil = nobody waits
}

// NewFiles returns a bound of so many logs, at least 2. Each has two files open, the log
// and its index; the two that a rotation put away are open besides, and not counted,
// until they are on disk.
func NewFiles(most int) *Files {
	return &Files{most: max(2, most), idle: map[*file]struct{}{}}
}

// Limit changes the bound, as NewFiles sets it. Where more logs than it allows stay open
// with nothing to write, the surplus is being closed when it returns; a log that is being
// written ends that first.
func (f *Files) Limit(most int) {
	for _, l := range f.limit(most) {
		l.restAgain() // takes the lock of a queue, under which files are given back: so not under mu
	}
}

// limit returns the surplus of idle logs.
func (f *Files) limit(most int) (surplus []*file) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.most = max(2, most)
	f.wakeLocked()
	for l := range f.idle {
		if len(f.idle)-len(surplus) <= f.most/2 {
			break
		}
		surplus = append(surplus, l)
	}
	return surplus
}

// take waits until another log may open its files.
func (f *Files) take() {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.open >= f.most {
		if f.given == nil {
			f.given = make(chan struct{})
		}
		given := f.given
		f.mu.Unlock()
		<-given // whoever has one beyond the idle half writes, and writing ends
		f.mu.Lock()
	}
	f.open++
}

// stay reports whether the files of l, which are open, may stay so while nothing is
// written. One that stayed before is judged anew.
func (f *Files) stay(l *file) bool {
	if f == nil {
		return true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.idle, l)
	if len(f.idle) >= f.most/2 {
		return false
	}
	f.idle[l] = struct{}{}
	return true
}

// give takes back what take gave for l.
func (f *Files) give(l *file) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open--
	delete(f.idle, l)
	f.wakeLocked()
}

func (f *Files) wakeLocked() {
	if f.given != nil {
		close(f.given)
		f.given = nil
	}
}
