package capture

import (
	"bytes"
	"iter"
	"sync"
	"time"
)

const (
	// maxPart is the longest part of a line that is held back for its end.
	maxPart = 64 << 10
	// holdBack is how long a line without end waits for the rest, so that lines of
	// two streams do not mix.
	holdBack = 200 * time.Millisecond
)

// A splitter cuts one stream into runs that end at a line's end, and gives each
// to out, in order. A run that does not is partial: its line was too long, or was
// not ended in time.
type splitter struct {
	out      func(run []byte, partial bool)
	patience time.Duration // holdBack, but for tests

	mu    sync.Mutex
	part  []byte      // mu guards; the begin of a line, without newline, at most maxPart
	timer *time.Timer // mu guards; nil = was never needed
}

// write takes the next bytes of the stream.
func (s *splitter) write(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := bytes.LastIndexByte(b, '\n'); last >= 0 {
		if len(s.part) == 0 {
			s.out(b[:last+1], false)
		} else {
			s.keep(b[:last+1])
			s.flushLocked(false)
		}
		b = b[last+1:]
	}
	if len(b) == 0 {
		return
	}
	for len(s.part)+len(b) >= maxPart {
		n := maxPart - len(s.part)
		s.keep(b[:n])
		s.flushLocked(true)
		if b = b[n:]; len(b) == 0 {
			return
		}
	}
	s.keep(b)
	if s.timer == nil {
		s.timer = time.AfterFunc(s.patience, func() { s.flush(true) })
	} else {
		s.timer.Reset(s.patience)
	}
}

func (s *splitter) keep(b []byte) {
	if s.part == nil {
		s.part = lent.get()
	}
	s.part = append(s.part, b...)
}

// flush gives out what is held back: partial, or the last line of the stream,
// which needs no newline.
func (s *splitter) flush(partial bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flushLocked(partial)
}

// flushLocked leaves no memory behind: most streams are idle most of the time.
func (s *splitter) flushLocked(partial bool) {
	if s.timer != nil {
		s.timer.Stop()
	}
	if len(s.part) == 0 {
		return
	}
	s.out(s.part, partial)
	lent.put(s.part)
	s.part = nil
}

// lines are the lines of a run, l with their text, without newline. Only the last can
// be partial. A line longer than maxPart is given in parts.
func lines(l Line, run []byte, partial bool) iter.Seq[Line] {
	return func(yield func(Line) bool) {
		for run := run; len(run) > 0; {
			text, rest, ended := bytes.Cut(run, []byte{'\n'})
			for len(text) > maxPart {
				l.Text, l.Partial = text[:maxPart], true
				if !yield(l) {
					return
				}
				text = text[maxPart:]
			}
			l.Text, l.Partial = text, !ended && partial
			if !yield(l) {
				return
			}
			run = rest
		}
	}
}
