package supervisor

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/recovery"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/supervisor/capture"
	"github.com/sovereign-run/sovereign/supervisor/process"
)

// Options of a Supervisor.
type Options struct {
	Data     string          // folder of the store; runs/ and logs/ are made in it
	Socket   string          // path of worker.sock, for SOVEREIGN_SOCKET
	Attacher Attacher        // serves the channels of workers; nil = workers get none
	Console  capture.Console // shows output as it comes; nil = nobody
	Environ  []string        // what children inherit, as os.Environ; what is reserved is left out
	Failed   <-chan struct{} // closed when the store does not know its last write; nil = never

	// Connections is told, before anything starts and at each reload, how many connections
	// of those who ask for something the limit of open files leaves room for; nil = nobody
	// is told. It does not wait.
	Connections func(n int)

	Log *slog.Logger // nil = discard

	// Handed is what the program before this one has passed on, nil = nothing, and
	// Processes are its children, in the order of Handed.Children.
	Handed    *Handed
	Processes []*process.Process
}

// A Supervisor keeps the declared actors running. New makes one, Run runs it; the
// other methods may be called from any goroutine while it runs.
type Supervisor struct {
	box      *mailbox.Box
	recovery *recovery.Recovery
	host     *process.Host
	attacher Attacher
	console  capture.Console
	log      *slog.Logger
	data     string
	socket   string
	lost     <-chan struct{}

	connections func(n int) // as Options.Connections

	environ  []string                 // what children inherit, each name once
	fleet    atomic.Pointer[[]*actor] // replaced as a whole, by whoever holds changing
	changing sync.RWMutex             // held while the fleet is replaced or set to work; read-held while all slots of an actor are told something
	living   living
	gate     gate
	changes  changes
	records  records
	tallies  tallies
	pace     *pace
	files    *capture.Files               // open files of logs
	lingers  map[fence.Slot]chan struct{} // slots with a leftover that does not die, closed once it has; set before the slots run

	notifySockets atomic.Uint64 // how many were made, for their names
	enforcing     atomic.Int32  // cancelled attempts whose end is being seen to
	handed        *Handed       // nil = there was no program before this one; Run forgets it

	base    context.Context // of all jobs; it ends when Run returns
	endBase context.CancelFunc
	jobs    jobs
	running chan struct{}        // closed once the slots run
	closing chan struct{}        // closed when everything is to stop
	haunted map[fence.Slot]error // slots that are not declared and of which something lives; whoever holds changing uses it
	slots   sync.WaitGroup       // the goroutines of the slots
	closed  sync.Once
	hurried atomic.Bool

	fatal   chan struct{} // closed at the first fatal error
	fatalMu sync.Mutex    // guards fatalIs
	fatalIs error
}

// New returns a supervisor of the actors of a checked file, or of those that the program
// before this one has passed on. Nothing is started.
// The box is loaded, and has recorded the actors, before Run is called.
func New(actors []config.Actor, box *mailbox.Box, rec *recovery.Recovery, host *process.Host, o Options) *Supervisor {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	sup := &Supervisor{box: box, recovery: rec, host: host, attacher: o.Attacher, console: o.Console, log: o.Log,
		data: o.Data, socket: o.Socket, lost: o.Failed, connections: o.Connections, records: records(filepath.Join(o.Data, "runs", "live")),
		living: newLiving(), tallies: newTallies(), haunted: map[fence.Slot]error{}, pace: newPace(), files: capture.NewFiles(maxPace), running: make(chan struct{}), closing: make(chan struct{}), fatal: make(chan struct{})}
	sup.base, sup.endBase = context.WithCancel(context.Background())
	sup.environ = overlay(inherited(o.Environ))
	if o.Handed != nil {
		sup.restore(o.Handed, o.Processes)
		return sup
	}
	var fleet []*actor
	for i := range actors {
		fleet = append(fleet, newActor(sup, define(&actors[i], 0, sup.environ)))
	}
	sup.fleet.Store(&fleet)
	return sup
}

// Run ends what a dead supervisor left, recovers what is on record, starts what
// is wanted, and keeps it so until ctx ends or Shutdown is called. It then
// stops everything, dependants first, and returns when nothing runs any more.
// Its error is nil unless something made it impossible to go on: a store whose
// last write has an unknown outcome (P4.10), or folders that cannot be made.
//
// After a program that has passed everything on there is nothing to end, to recover or
// to start: what it had running goes on.
func (sup *Supervisor) Run(ctx context.Context) error {
	defer sup.endBase()
	room, err := sup.makeRoom(sup.Declared())
	switch {
	case err == nil:
		sup.share(room)
	case sup.handed != nil: // what lives has its descriptors
		sup.log.Warn("not all slots can run at once", "err", err)
	default:
		return err
	}
	if sup.handed != nil {
		sup.takeOver()
	} else if begun, err := sup.begin(ctx); !begun {
		return err
	}

	select {
	case <-ctx.Done():
		sup.log.Info("stopping", "cause", context.Cause(ctx))
	case <-sup.closing:
		sup.log.Info("stopping", "cause", "shutdown")
	case <-sup.fatal:
		sup.log.Error("stopping", "err", sup.fatalError())
		sup.Hurry()
	case <-sup.lost:
		sup.fail(refusal.New(refusal.OutcomeUnknown, "the store does not know its last write", "", "run it again: recovery decides"))
		sup.Hurry()
	}
	sup.stopAll()
	sup.slots.Wait()
	sup.box.Note(mailbox.Event{Kind: protocol.EventSupervisorStopped})
	sup.jobs.close()
	sup.endBase()
	sup.jobs.wait()
	if err := sup.clearNotify(); err != nil {
		sup.log.Warn("sockets for sd_notify not removed", "err", err)
	}
	return sup.fatalError()
}

// begin recovers and starts. It is false, with the error if there was one, where the
// supervisor does not run.
func (sup *Supervisor) begin(ctx context.Context) (begun bool, err error) {
	if err := sup.prepare(); err != nil {
		return false, err
	}
	stuck, err := sup.recover(ctx)
	if ctx.Err() != nil {
		return false, nil // stopped before anything was started; the next start goes on
	}
	if err != nil {
		return false, err
	}
	sup.listen()
	sup.box.Note(mailbox.Event{Kind: protocol.EventSupervisorStarted})

	sup.changing.Lock() // who has seen one slot at work may operate on any: it waits until all are told
	defer sup.changing.Unlock()
	for _, a := range sup.actors() {
		for _, s := range a.slots {
			sup.own(s)
		}
	}
	for slot, err := range stuck {
		sup.haunt(slot, err)
	}
	wanted := sup.wanted(sup.Declared())
	for _, a := range sup.actors() {
		if wanted[a.name()] && !sup.isClosing() {
			for _, s := range a.slots {
				s.post(func() { s.step(start) })
			}
		}
	}
	close(sup.running)
	return true, nil
}

// listen has the mailbox tell what becomes of claims.
func (sup *Supervisor) listen() {
	sup.box.OnOverdue(sup.overdue)
	sup.box.OnLost(sup.claimLost)
	sup.box.OnResultGone(func(id mailbox.ID, attempt int) { sup.dropResult(sup.recovery.Workspaces().Result(id, attempt).Path) })
}

// prepare makes the folders that processes need.
func (sup *Supervisor) prepare() error {
	if err := sup.clearNotify(); err != nil {
		return refusal.New(refusal.Failed, "remove the sockets of an earlier run", err.Error(), "make the folder of the store writable").Because(err)
	}
	for _, dir := range []string{string(sup.records), filepath.Join(sup.data, "runs", "results")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return refusal.New(refusal.Failed, "make the folder "+dir, err.Error(), "make the folder of the store writable").Because(err)
		}
	}
	return nil
}

// wanted are those of actors that nobody has stopped.
func (sup *Supervisor) wanted(actors []config.Actor) map[string]bool {
	stoppedNow := map[string]bool{}
	for _, a := range sup.box.Actors() {
		stoppedNow[a.Name] = a.Stopped
	}
	out := map[string]bool{}
	for i := range actors {
		out[actors[i].Name] = !stoppedNow[actors[i].Name]
	}
	return out
}

// job runs f in a goroutine that Run joins, and reports whether it does: not once
// every slot has ended. That ends its context, too.
func (sup *Supervisor) job(f func(context.Context)) bool {
	return sup.jobs.run(func() { f(sup.base) })
}

// isRunning reports whether the slots have an owner, for good.
func (sup *Supervisor) isRunning() bool {
	select {
	case <-sup.running:
		return true
	default:
		return false
	}
}

func (sup *Supervisor) isClosing() bool {
	select {
	case <-sup.closing:
		return true
	default:
		return false
	}
}

func (sup *Supervisor) now() fence.Instant { return sup.box.Leases().Now() }

// fail stops the supervisor for err. The first error is what Run returns.
func (sup *Supervisor) fail(err error) {
	sup.fatalMu.Lock()
	defer sup.fatalMu.Unlock()
	if sup.fatalIs == nil {
		sup.fatalIs = err
		close(sup.fatal)
	}
}

func (sup *Supervisor) failed() bool { return sup.fatalError() != nil }

func (sup *Supervisor) fatalError() error {
	sup.fatalMu.Lock()
	defer sup.fatalMu.Unlock()
	return sup.fatalIs
}

// note records an event of c, and for a task of its message, without waiting.
func (sup *Supervisor) note(c *child, kind protocol.EventKind, text string) {
	var about mailbox.ID
	if c.task != nil {
		about = c.task.ID
	}
	sup.noteOf(c, about, kind, text)
}

// noteOf records an event of a message that c works on, 0 = of none, without waiting.
func (sup *Supervisor) noteOf(c *child, id mailbox.ID, kind protocol.EventKind, text string) {
	ev := c.slot.event(kind, text)
	ev.Process, ev.Token, ev.Message = c.holder.Process, c.holder.Token, id
	if c.task != nil && c.task.ID == id {
		ev.Attempt = c.task.Attempt
	}
	sup.box.Note(ev)
}

// noteSlot records an event of a slot, without waiting.
func (sup *Supervisor) noteSlot(s *slot, kind protocol.EventKind, text string) {
	sup.box.Note(s.event(kind, text))
}
