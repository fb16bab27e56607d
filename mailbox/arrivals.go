package mailbox

import (
	"crypto/rand"
	"sync"
	"time"
)

// arrivalRoom is how many arrivals are remembered for who follows them.
const arrivalRoom = 4096

// An Arrival is a message that has become visible to its recipient.
type Arrival struct {
	ID ID     `json:"id"`
	To string `json:"to"`
}

// HandedArrivals are what one box remembers of arrivals, for another box of the same
// store that goes on in its place: who follows notices nothing.
type HandedArrivals struct {
	Box  string    `json:"box"`
	Next uint64    `json:"next"` // the number that the next arrival gets
	List []Arrival `json:"list"` // the last ones before it
}

// arrivals remembers the messages that have become visible last, so that who follows a
// mailbox is told of them: a send is no event, and writes none. Nothing is remembered
// before somebody asks, so that a send costs a count where nobody follows.
//
// Arrivals are numbered from the time at which the box was opened, in microseconds, so
// that the numbers of an earlier box are mostly smaller than those of this one. Where the
// wall clock was set back they are not: box tells them apart.
type arrivals struct {
	box     string        // random
	mu      sync.Mutex    // guards what follows
	first   uint64        // the number of the first that is remembered
	next    uint64        // that the next one gets
	ring    []Arrival     // number n lies at n % arrivalRoom; nil until somebody asks
	changed chan struct{} // closed when there are more; nil while nobody waits
}

func newArrivals(opened time.Time, handed *HandedArrivals) *arrivals {
	if handed == nil || handed.Box == "" || handed.Next <= uint64(len(handed.List)) {
		at := uint64(max(1, opened.UnixMicro()))
		return &arrivals{box: rand.Text(), first: at, next: at}
	}
	list := handed.List[max(0, len(handed.List)-arrivalRoom):]
	a := &arrivals{box: handed.Box, first: handed.Next - uint64(len(list)), next: handed.Next, ring: make([]Arrival, arrivalRoom)}
	for i, one := range list {
		a.ring[(a.first+uint64(i))%arrivalRoom] = one
	}
	return a
}

// HandArrivals returns what Options.Arrivals of the box that takes the place of this one
// is to be; nil where nobody has asked for arrivals. Those told later are not in it.
func (b *Box) HandArrivals() *HandedArrivals {
	a := b.arrivals
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ring == nil {
		return nil
	}
	out := &HandedArrivals{Box: a.box, Next: a.next, List: make([]Arrival, 0, a.next-a.first)}
	for n := a.first; n < a.next; n++ {
		out.List = append(out.List, a.ring[n%arrivalRoom])
	}
	return out
}

// ArrivalsOf names the box whose numbers Arrivals has: another one's mean nothing here,
// unless this one goes on in its place (Options.Arrivals).
func (b *Box) ArrivalsOf() string { return b.arrivals.box }

// tell is called once it is durable that a message is visible.
func (a *arrivals) tell(id ID, to string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ring == nil {
		a.first, a.next = a.first+1, a.next+1
		return
	}
	a.ring[a.next%arrivalRoom] = Arrival{id, to}
	a.next++
	if a.next-a.first > arrivalRoom {
		a.first = a.next - arrivalRoom
	}
	if a.changed != nil {
		close(a.changed)
		a.changed = nil
	}
}

// Arrivals returns up to limit messages that have become visible to their recipients,
// from number from on, in that order; the number to ask from next; and a channel that is
// closed when there are more. From 0 there are none yet: it is where following begins.
//
// Few are remembered, and none before somebody has asked or in another box. Where some
// of those asked for are forgotten, missed is true, and next leads on from now: List
// finds them.
func (b *Box) Arrivals(from uint64, limit int) (list []Arrival, next uint64, missed bool, more <-chan struct{}) {
	a := b.arrivals
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ring == nil {
		a.ring = make([]Arrival, arrivalRoom)
		a.first = a.next
	}
	if a.changed == nil {
		a.changed = make(chan struct{})
	}
	missed = from != 0 && (from < a.first || from > a.next)
	if from == 0 || missed {
		return nil, a.next, missed, a.changed
	}
	for from < a.next && len(list) < limit {
		list = append(list, a.ring[from%arrivalRoom])
		from++
	}
	return list, from, false, a.changed
}
