package capture

import "sync"

// Files bounds how many logs have their files open at one time. Up to half of them may
// stay open while there is nothing to write; the others are closed then, and opened anew
// for the next output. nil = there is no bound.
type Files struct {
	mu    sync.Mutex
	most  int           // mu guards
	open  int           // mu guards; logs that have their files open
	idle  int           // mu guards; those of them that may stay so
	given chan struct{} // mu guards; closed when there may be room; nil = nobody waits
}

// NewFiles returns a bound of so many logs, two files each.
func NewFiles(most int) *Files { return &Files{most: max(2, most)} }

// Limit changes the bound.
func (f *Files) Limit(most int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.most = max(2, most)
	f.wakeLocked()
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
		<-given // whoever has one writes, and writing ends
		f.mu.Lock()
	}
	f.open++
}

// stay reports whether files that are open may stay so while nothing is written.
func (f *Files) stay() bool {
	if f == nil {
		return true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.idle >= f.most/2 {
		return false
	}
	f.idle++
	return true
}

// give takes back what take gave; stays says that stay was true.
func (f *Files) give(stays bool) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open--
	if stays {
		f.idle--
	}
	f.wakeLocked()
}

func (f *Files) wakeLocked() {
	if f.given != nil {
		close(f.given)
		f.given = nil
	}
}
