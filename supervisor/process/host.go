package process

import (
	"context"
	"log/slog"
	"syscall"
	"time"
)

// KillBound is how long KillTree and its like wait for what got SIGKILL.
const KillBound = 10 * time.Second

// NewHost prepares this program to own children, and is called once, early, by
// the program that supervises. It marks every descriptor above 2
// close-on-exec, makes the program a child subreaper, replaces inherited
// "ignored" signals by handlers that do nothing (so that children get the
// defaults; ask signal.Ignored before), starts the spawner thread and the
// reaper, and makes a cgroup "sovereign-…" under its own where it may.
//
// The reaper takes the exit status of every child made by Start, and of orphans
// that came to this program as subreaper or as PID 1. It leaves alone children
// that other code of the program made with package os or os/exec: an open pidfd
// of this program refers to those. Children made by bare syscall.ForkExec are
// not recognised and would be taken for orphans.
//
// The current directory of children without a Dir is the program's at this
// moment: a later os.Chdir does not reach the spawner thread. A nil log discards.
func NewHost(log *slog.Logger) (*Host, error) {
	h, _, err := newHost(log, nil, Handed{})
	return h, err
}

// Handed is what the next image of this very process has to know of a Host, see
// Exec.
type Handed struct {
	Children []Inherited       `json:"children"`
	Cgroup   *InheritedCgroups `json:"cgroup,omitempty"` // nil = there is none
	Files    *FileLimit        `json:"files,omitempty"`  // of children; nil = that of the program
}

// A FileLimit is a limit of open files.
type FileLimit struct {
	Soft uint64 `json:"soft"`
	Hard uint64 `json:"hard"`
}

// An Inherited is a child of an earlier image of this very process.
type Inherited struct {
	ID     Identity `json:"id"`
	Mark   string   `json:"mark"`
	Cgroup string   `json:"cgroup"`
	Exit   *Exit    `json:"exit,omitempty"` // how it ended, if that has been seen
}

// InheritedCgroups is a Host's folder in cgroup v2.
type InheritedCgroups struct {
	Own     string `json:"own"`     // the cgroup that the supervisor was started in
	Root    string `json:"root"`    // the folder in it
	Limits  bool   `json:"limits"`  // memory and pids are enabled
	Moved   bool   `json:"moved"`   // the supervisor is in a leaf of its own
	Enabled string `json:"enabled"` // what was added to Own's subtree_control
}

// Inherit is NewHost for a program that was put in place by Exec: it takes over
// the children, in the same order, before it reaps any. One that is no child of ours
// any more has exited with status -1. main is the thread that the program began on:
// it is the one that has executed it, to which the children's parent-death signal is
// bound, and so it makes all further ones.
func Inherit(log *slog.Logger, main *Thread, h Handed) (*Host, []*Process, error) {
	return newHost(log, main, h)
}

// Start starts one child and returns once its program was executed, or why it
// was not: the error is a [*StartError], or ctx's when it ended first. The
// child may already have ended when Start returns. May be called by any number
// of goroutines; children are made one after the other.
func (h *Host) Start(ctx context.Context, s Spec) (*Process, error) { return h.start(ctx, s) }

// EnableLimits makes Spec.Memory and Spec.Pids usable: it enables those two
// controllers for the Host's cgroup, moving the supervisor to a leaf of its own
// where the rule "no internal processes" asks for that. The error says, for
// people, what is missing; then a Spec that uses them is refused by Start.
func (h *Host) EnableLimits() error { return h.enableLimits() }

// RaiseFiles raises this program's limit of open files to n where it is lower, and
// returns what it is then. Above the hard limit that takes a privilege (CAP_SYS_RESOURCE
// on Linux); the error says that it is missing. Children keep the limit that the program
// was started with.
func (h *Host) RaiseFiles(n uint64) (limit uint64, err error) { return h.raiseFiles(n) }

// EndLeftover ends what is left of a child of a dead supervisor: the child
// itself, if its number still means the same process; what is in its cgroup
// (as [Process.Cgroup] gave it, "" = none); every process with
// SOVEREIGN_PROCESS=mark in its environment ("" = none); and all that descends
// from those. A process that got the child's number since is left alone. Call it
// only with the store's lock held.
//
// It returns how many living processes were found, once they are dead, or a
// [*StuckError]. Any other error means that it is not known whether something
// lives. Nothing is found after a reboot.
func (h *Host) EndLeftover(ctx context.Context, id Identity, mark, cgroup string) (found int, err error) {
	return h.endLeftover(ctx, id, mark, cgroup)
}

// EndMarked ends every process, with its descendants, whose environment holds
// SOVEREIGN_PROCESS, or else SOVEREIGN_PROBE, with a value for which match is true, except
// this program and its ancestors. It finds what a supervisor started and had no time to
// record. Call it before the first Start. match must know this store's marks; another
// store's workers carry the variables too. Results are as of EndLeftover; a StuckError
// names the marks of what does not die.
func (h *Host) EndMarked(ctx context.Context, match func(mark string) bool) (found int, err error) {
	return h.endMarked(ctx, match)
}

// Tended are those marks for which match is true that are borne by a process which
// another supervisor, a living one, looks after: it listens on the socket that the process
// was given (SOVEREIGN_SOCKET), bears no such mark itself, and the process descends from
// it. By mark, the supervisor's PID. Of a store that is a copy of another one's they are no
// leftovers. Empty on systems other than Linux, where no leftover is ended either.
func (h *Host) Tended(match func(mark string) bool) (map[string]int, error) { return h.tended(match) }

// Pause stops reaping, so that what ends from now on is left for the next image of
// this program, and returns what that has to know besides the children, each of
// which Inherited describes. Call it when no Start is under way.
func (h *Host) Pause() Handed { return h.pause() }

// Resume ends Pause.
func (h *Host) Resume() { h.resume() }

// Inherited is what the next image of this program has to know of p. Call it while
// the Host is paused.
func (p *Process) Inherited() Inherited { return p.inherited() }

// Exec replaces this program by another one, on the spawner thread, the only
// one from which children survive that. keep are descriptors that the new
// program inherits under their numbers. The children, and the duty to reap
// them, pass to the new program, which takes them over with Inherit. A SIGHUP, SIGINT
// or SIGTERM that comes until the new program catches it does with that what is the
// default: it ends it, and the children with it. Exec returns only if it failed; then all
// is as before.
func (h *Host) Exec(path string, argv, env []string, keep []uintptr) error {
	return h.exec(path, argv, env, keep)
}

// Close kills whatever still runs, waits for it, removes the cgroup, and ends
// thread and reaper. A Start after it is refused. It returns a [*StuckError] if
// something did not die.
func (h *Host) Close() error { return h.close() }

// PID is the child's number. It means nothing after Exited.
func (p *Process) PID() int { return p.id.PID }

// ID is what to record on disk, for EndLeftover.
func (p *Process) ID() Identity { return p.id }

// Cgroup is the absolute path of the tree's cgroup, to be recorded on disk for
// EndLeftover; "" = none.
func (p *Process) Cgroup() string { return p.cgroupPath() }

// Exited is closed when the child itself, the leader of the tree, has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Exit is how the child ended; the zero Exit before Exited is closed.
func (p *Process) Exit() Exit {
	select {
	case <-p.exited:
		return p.exit
	default:
		return Exit{}
	}
}

// Signal sends sig to the child's process group, or, once the child itself has
// ended, to each process left of the tree. Nobody left to signal is no error.
func (p *Process) Signal(sig syscall.Signal) error { return p.signal(sig, false) }

// Stop sends sig as Signal does, and SIGCONT after it, so that members that are
// stopped act on it.
func (p *Process) Stop(sig syscall.Signal) error { return p.signal(sig, true) }

// KillTree sends SIGKILL to every process of the tree, also to what it starts
// meanwhile, and returns when nothing of it runs. It frees what the Host keeps for
// the tree, so call it, or WaitTree, after every exit, also a clean one: it is
// cheap when nothing is left. It returns a [*StuckError] naming what did not die within
// [KillBound], and ctx's error when that ended first. May be
// repeated; a tree that is gone is no error.
func (p *Process) KillTree(ctx context.Context) error { return p.killTree(ctx) }

// Owns reports whether pid is a process of the tree now. known is false where no
// process of that number lives: then nobody can tell any more whose it was.
func (p *Process) Owns(pid int) (owns, known bool) { return p.ownsNow(pid) }

// WaitTree waits until nothing of the tree is left, or ctx ends, whose error it
// then returns.
func (p *Process) WaitTree(ctx context.Context) error { return p.waitTree(ctx) }
