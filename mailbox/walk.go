package mailbox

import "github.com/sovereign-run/sovereign/store"

// A walk goes through the records of both places, open and closed, in the order of
// their ids, in one state of the store.
type walk struct {
	*Box
	r     store.Reader
	back  bool
	wants func(*record) bool // others are not shown
	open  place
	ended place
}

// A place is what a walk has read ahead of one space.
type place struct {
	space byte
	at    ID       // the last id that was read, 0 before the first
	ahead []seen   // not yet handed out
	room  [64]seen // what ahead is a part of
	last  bool     // there is nothing behind ahead
}

// seen is one entry of a space; one that cannot be read, that nobody may see yet, or
// that is not wanted, is not shown, and its content not looked for.
type seen struct {
	id      ID
	rec     record
	content []byte // as the store has it, nil where there is none
	shown   bool
}

// walkFrom returns a walk that begins behind from, upwards, or downwards where back
// is true; from 0 is the beginning of either. It looks only where a message of state
// s can lie; 0 is any state.
func (b *Box) walkFrom(r store.Reader, s State, from ID, back bool, wants func(*record) bool) *walk {
	w := &walk{Box: b, r: r, back: back, wants: wants, open: place{space: spaceOpen, at: from}, ended: place{space: spaceClosed, at: from}}
	running := s == New || s == Claimed
	w.open.last = s != 0 && !running
	w.ended.last = running
	return w
}

// next returns the next entry, nil behind the last one. It is valid until the next
// call.
func (w *walk) next() *seen {
	w.fill(&w.open)
	w.fill(&w.ended)
	first := &w.open
	if len(w.open.ahead) == 0 || len(w.ended.ahead) > 0 && (w.ended.ahead[0].id < w.open.ahead[0].id) != w.back {
		first = &w.ended
	}
	if len(first.ahead) == 0 {
		return nil
	}
	one := &first.ahead[0]
	first.ahead = first.ahead[1:]
	return one
}

// fill reads ahead where nothing is left.
func (w *walk) fill(p *place) {
	if len(p.ahead) > 0 || p.last {
		return
	}
	n := 0
	p.last = true
	read := func(k, v []byte) bool {
		id, ok := parseIDKey(k)
		if !ok {
			return true
		}
		if n == len(p.room) {
			p.last = false
			return false
		}
		one := &p.room[n]
		n++
		one.id, p.at, one.content = id, id, nil
		one.shown = one.rec.decode(id, v, w.actors.name) == nil && w.visible(w.r, &one.rec).state != staged && w.wants(&one.rec)
		return true
	}
	switch {
	case !w.back:
		w.r.Scan(idKey(p.space, p.at+1), nil, read)
	case p.at == 0:
		w.r.ScanBack([]byte{p.space}, []byte{p.space + 1}, read)
	default:
		w.r.ScanBack([]byte{p.space}, idKey(p.space, p.at), read)
	}
	p.ahead = p.room[:n]
	w.contents(p)
}

// contents finds the contents of what was read ahead and is shown: where that lies
// close together, in one go, which costs a fifth of looking for each.
func (w *walk) contents(p *place) {
	shown := 0
	for i := range p.ahead {
		if p.ahead[i].shown {
			shown++
		}
	}
	if shown == 0 {
		return
	}
	low, high := p.ahead[0].id, p.ahead[len(p.ahead)-1].id
	if w.back {
		low, high = high, low
	}
	if uint64(high-low) >= 8*uint64(shown) {
		for i := range p.ahead {
			if one := &p.ahead[i]; one.shown {
				one.content = w.r.Get(idKey(spaceContent, one.id))
			}
		}
		return
	}
	i, step := 0, 1
	if w.back {
		i, step = len(p.ahead)-1, -1
	}
	w.r.Scan(idKey(spaceContent, low), idKey(spaceContent, high+1), func(k, v []byte) bool {
		id, ok := parseIDKey(k)
		for ok && i >= 0 && i < len(p.ahead) && p.ahead[i].id < id {
			i += step
		}
		if ok && i >= 0 && i < len(p.ahead) && p.ahead[i].id == id {
			p.ahead[i].content = v
		}
		return true
	})
}
