package process

import "os"

// MarkVariable is the environment variable by whose value a tree is found when
// nothing else is left of it.
const MarkVariable = "SOVEREIGN_PROCESS"

// ProbeVariable is the same for what is no incarnation of an actor, and so has no
// identity: its mark is no capability.
const ProbeVariable = "SOVEREIGN_PROBE"

// SocketVariable is the environment variable that tells a child the path of a socket of
// its supervisor.
const SocketVariable = "SOVEREIGN_SOCKET"

// A Spec says how to start one child. Nothing in it is closed by Start: the
// caller closes its copies of the child's ends afterwards.
type Spec struct {
	// Argv is the command. Argv[0] without a slash is looked up in the PATH of
	// Env; a relative path counts from Dir.
	Argv []string
	Dir  string   // working directory; "" = the supervisor's own
	Env  []string // the whole environment, "k=v"; should hold SOVEREIGN_PROCESS=Mark, or SOVEREIGN_PROBE=Mark

	// Stdin, Stdout and Stderr are the child's ends; nil is /dev/null. Start makes
	// them, and Channel, blocking, for programs expect that. Pipes are given to the
	// child's user, so that /dev/stderr can be opened after a switch of user.
	Stdin, Stdout, Stderr *os.File
	Channel               *os.File // becomes descriptor 3; nil = none

	Credential *Credential // nil = the supervisor's own
	Umask      int         // -1 = the supervisor's own; note that zero is umask 0
	NoFile     uint64      // soft and hard limit of open files; 0 = what the supervisor was started with
	Memory     int64       // bytes, memory.max of the cgroup; 0 = no limit; see [Host.EnableLimits]
	Pids       int64       // pids.max of the cgroup; 0 = no limit

	// Mark is the value of that variable in Env, by which what left the
	// session is found; "" = none.
	Mark string
	// Cgroup names the leaf for this child under the Host's own cgroup, and must
	// be unique among living trees: letters, digits, ".", "_", "-". "" = none. It
	// is ignored where cgroup v2 is not writable.
	Cgroup string
}

// A Credential is the user that a child runs as. Its supplementary groups are
// exactly Groups.
type Credential struct {
	UID, GID uint32
	Groups   []uint32
}
