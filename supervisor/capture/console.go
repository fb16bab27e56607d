package capture

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"strconv"
	"sync"
)

// maxShown is how many bytes wait for a terminal.
const maxShown = 256 << 10

// A Printer is the Console of a terminal.
type Printer struct {
	w     io.Writer
	color func(actor string) (before, after string)

	mu      sync.Mutex
	pending []byte        // mu guards
	dropped int64         // mu guards; since the last report
	lost    int64         // mu guards
	printed chan struct{} // mu guards; closed when there is nothing left to print; nil = so it is
}

// NewConsole makes a Console that writes "actor.slot | line" to w, with color
// around the prefix where it is not nil: it returns what to write before and
// after. Lines that w does not take in time are dropped, counted, and reported
// once it takes them again. A part of a line that goes on ends in "…".
func NewConsole(w io.Writer, color func(actor string) (before, after string)) *Printer {
	return &Printer{w: w, color: color}
}

// Lines queues lines. It never blocks.
func (p *Printer) Lines(lines iter.Seq[Line]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range lines {
		if len(p.pending)+len(l.Text) > maxShown {
			p.dropped++
			p.lost++
			continue
		}
		if p.pending == nil {
			p.pending = lent.get()
		}
		p.pending = p.format(p.pending, l)
	}
	if p.printed == nil && len(p.pending) > 0 {
		p.printed = make(chan struct{})
		go p.print() // ends when all is printed; Close waits for it
	}
}

func (p *Printer) format(b []byte, l Line) []byte {
	var before, after string
	if p.color != nil {
		before, after = p.color(l.Actor)
	}
	b = append(b, before...)
	b = append(b, l.Actor...)
	b = append(b, '.')
	b = strconv.AppendInt(b, int64(l.Slot), 10)
	b = append(b, " | "...)
	b = append(b, after...)
	b = append(b, bytes.TrimSuffix(l.Text, []byte{'\r'})...)
	if l.Partial {
		b = append(b, "…"...)
	}
	return append(b, '\n')
}

func (p *Printer) print() {
	for {
		p.mu.Lock()
		b, dropped := p.pending, p.dropped
		p.pending, p.dropped = nil, 0
		if len(b) == 0 && dropped == 0 {
			close(p.printed)
			p.printed = nil
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
		if dropped > 0 {
			b = fmt.Appendf(b, "sovereign | %d lines were not shown: the terminal did not keep up\n", dropped)
		}
		p.w.Write(b) // a terminal that is gone is nobody's concern
		lent.put(b)
	}
}

// Lost is how many lines were dropped, since NewConsole.
func (p *Printer) Lost() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

// Close waits until all is written, or ctx ends, whose error it then returns.
func (p *Printer) Close(ctx context.Context) error {
	p.mu.Lock()
	printed := p.printed
	p.mu.Unlock()
	if printed == nil {
		return nil
	}
	select {
	case <-printed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
