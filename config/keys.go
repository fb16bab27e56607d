package config

import (
	"math"
	"slices"
	"time"
)

// A key is one key of actors.yaml: what may stand there, what holds where it
// is left out, and what it means. Exactly one of kind and keys is set.
type key struct {
	name    string
	kind    kind
	keys    []*key   // of a mapping
	modes   []Mode   // in which the key makes sense; nil: in all
	def     string   // as the file would write it; "": off or empty unless given
	meaning string   // one sentence, for editors and docs/actors.md
	aka     []string // what other supervisors call it, in lower case

	// live: a change holds for a process that runs, too, or for what comes after
	// it; no new process is needed. It holds for the keys of a mapping.
	live bool
	// told: whether the processes of an actor are told the value, so that it cannot
	// change while they run, live or not. nil: they are not.
	told func(*Actor) bool

	field field
	// present, of a mapping: whether the actor has it at all. The defaults of
	// its keys hold only then. nil: it always has.
	present func(*Actor) bool
}

// fits reports whether k makes sense in mode. Every key fits a mode that could
// not be read.
func (k *key) fits(mode Mode) bool {
	return k.modes == nil || mode == "" || slices.Contains(k.modes, mode)
}

// standard is the value of k's default.
func (k *key) standard() any {
	value, err := k.kind.(scalar).parse(k.def, false)
	if err != nil {
		panic("config: the default of " + k.name + " " + err.Error())
	}
	return value
}

// A field is where an Actor keeps the value of a key.
type field struct {
	set func(*Actor, any)
	get func(*Actor) any
}

func in[T any](at func(*Actor) *T) field {
	return field{
		set: func(a *Actor, value any) { *at(a) = value.(T) },
		get: func(a *Actor) any { return *at(a) },
	}
}

// notifies reports whether a's processes speak sd_notify.
func notifies(a *Actor) bool { return a.Ready != nil && a.Ready.Notify }

// readyOf is a's Ready, made where there is none.
func readyOf(a *Actor) *Ready {
	if a.Ready == nil {
		a.Ready = new(Ready)
	}
	return a.Ready
}

var (
	mailboxed = []Mode{Task, Worker}   // has messages
	lasting   = []Mode{Worker, Daemon} // has a child that stays
)

// fileKeys are the keys of the file itself. actors and defaults hold actorKeys.
var fileKeys = []*key{
	{name: "version", def: "1", kind: whole[int]{1, 1},
		meaning: "The version of this format."},
	{name: "data", def: ".sovereign", kind: text{what: "the path of a folder"}, aka: []string{"datadir", "data_dir", "state"},
		meaning: "The folder of the store, relative to the folder of this file."},
	{name: "defaults", keys: actorKeys,
		meaning: "Any key of an actor, for all actors whose mode it fits. The actor's own value wins; mappings are merged key by key."},
	{name: "actors", keys: actorKeys, aka: []string{"services", "processes", "programs"},
		meaning: "The actors, by name."},
}

// actorKeys are the keys of an actor.
var actorKeys = slices.Concat(processKeys, lifeKeys, messageKeys, outputKeys)

// processKeys say what is executed, and as what.
var processKeys = []*key{
	{name: "command", kind: commandLine{}, aka: []string{"cmd", "exec", "run", "entrypoint", "argv", "args"},
		field:   in(func(a *Actor) *[]string { return &a.Command }),
		meaning: "What to execute: a list as it is, a text by /bin/sh -c. Required, here or in defaults. A program with a slash in its name and no slash in front is looked up from cwd."},
	{name: "mode", def: "task", kind: choice[Mode]{words: []Mode{Task, Worker, Daemon}}, aka: []string{"type", "kind"},
		field:   in(func(a *Actor) *Mode { return &a.Mode }),
		meaning: "task: a child per message. worker: a child that stays and claims messages. daemon: a child that is only supervised."},
	{name: "replicas", live: true, def: "1", kind: whole[int]{1, 1024}, aka: []string{"instances", "numprocs", "count", "scale", "concurrency"},
		field:   in(func(a *Actor) *int { return &a.Replicas }),
		meaning: "The number of slots, each with a child and a lease of its own."},
	{name: "cwd", def: ".", kind: text{what: "the path of a folder"}, aka: []string{"dir", "directory", "workdir", "working_dir", "workingdirectory"},
		field:   in(func(a *Actor) *string { return &a.Cwd }),
		meaning: "The folder in which the child is started, relative to the folder of this file."},
	{name: "env", kind: environment{}, aka: []string{"environment"},
		field:   in(func(a *Actor) *map[string]string { return &a.Env }),
		meaning: "Variables of the child's environment, exactly as written. They win over env_file and over what the supervisor inherited."},
	{name: "env_file", live: true, kind: text{what: "the path of a file of NAME=VALUE lines"}, aka: []string{"environmentfile", "dotenv"},
		field:   in(func(a *Actor) *string { return &a.EnvFile }),
		meaning: "A file of NAME=VALUE lines, relative to the folder of this file."},
	{name: "user", kind: account("user"), aka: []string{"uid"},
		field:   in(func(a *Actor) *string { return &a.User }),
		meaning: "The user as whom the child runs; the supervisor's own unless given."},
	{name: "group", kind: account("group"), aka: []string{"gid"},
		field:   in(func(a *Actor) *string { return &a.Group }),
		meaning: "The group as which the child runs; the user's primary group unless given."},
	{name: "umask", kind: octal{},
		field:   in(func(a *Actor) *int { return &a.Umask }),
		meaning: "The file mode creation mask of the child, octal; the supervisor's own unless given."},
	{name: "limits", aka: []string{"resources", "ulimits", "rlimits"},
		meaning: "Resource limits of each process.",
		keys: []*key{
			{name: "nofile", kind: whole[uint64]{1, 1 << 30},
				field:   in(func(a *Actor) *uint64 { return &a.Limits.NoFile }),
				meaning: "The number of open files (RLIMIT_NOFILE)."},
			{name: "memory", kind: size{max: math.MaxInt64}, aka: []string{"mem", "memory_limit"},
				field:   in(func(a *Actor) *int64 { return &a.Limits.Memory }),
				meaning: "Memory; needs a delegated cgroup v2, else the start is refused."},
			{name: "pids", kind: whole[int64]{1, 1 << 22},
				field:   in(func(a *Actor) *int64 { return &a.Limits.Pids }),
				meaning: "The number of processes and threads; needs a delegated cgroup v2, else the start is refused."},
		}},
}

// lifeKeys say when a child is started, watched and stopped.
var lifeKeys = []*key{
	{name: "restart", live: true, def: "always", modes: lasting, kind: choice[Restart]{words: []Restart{Always, OnFailure, Never},
		meant: map[string]string{"on_failure": "on-failure", "no": "never", "false": "never", "true": "always", "yes": "always", "unless-stopped": "always"}},
		aka:     []string{"autorestart", "restart_policy"},
		field:   in(func(a *Actor) *Restart { return &a.Restart }),
		meaning: "Whether a child that ended by itself is started again. In a task it is retry that decides."},
	{name: "backoff", live: true, aka: []string{"restart_delay"},
		meaning: "The wait before a child is started again: initial × factor^n, at most max, varied by ± jitter.",
		keys: growth(duration{min: moment}, "100ms", "30s", func(a *Actor) *Backoff {
			return &a.Backoff
		})},
	{name: "intensity", live: true, aka: []string{"startlimit", "max_restarts"},
		meaning: "More than restarts ends within the time make the slot failed, until a person starts it. In a task only children that could not be started count.",
		keys: []*key{
			{name: "restarts", def: "5", kind: whole[int]{0, 1_000_000},
				field:   in(func(a *Actor) *int { return &a.Intensity.Restarts }),
				meaning: "How many ends are tolerated."},
			{name: "within", def: "60s", kind: duration{min: moment},
				field:   in(func(a *Actor) *time.Duration { return &a.Intensity.Within }),
				meaning: "The time in which they are counted."},
		}},
	{name: "stop", live: true, aka: []string{"shutdown"},
		meaning: "How a child is asked to end, and how long that may take before its whole tree is killed.",
		keys: []*key{
			{name: "signal", def: "TERM", kind: stopSignal, aka: []string{"stopsignal"},
				field:   in(func(a *Actor) *string { return &a.Stop.Signal }),
				meaning: "The signal that asks, without SIG."},
			{name: "timeout", def: "10s", kind: duration{}, aka: []string{"grace", "stopwaitsecs"},
				field:   in(func(a *Actor) *time.Duration { return &a.Stop.Timeout }),
				meaning: "The time before SIGKILL; 0s kills right after asking."},
		}},
	{name: "ready", modes: lasting, aka: []string{"healthcheck", "readiness_probe", "readiness"},
		present: func(a *Actor) bool { return a.Ready != nil },
		meaning: "How the child shows that it is ready: exactly one of notify, exec, tcp and http. Without it the child is ready once started.",
		keys: []*key{
			{name: "notify", kind: truth{only: true},
				field:   in(func(a *Actor) *bool { return &readyOf(a).Notify }),
				meaning: "It says so: by the method ready, or by READY=1 to the socket that NOTIFY_SOCKET names (sd_notify)."},
			{name: "exec", kind: commandLine{},
				field:   in(func(a *Actor) *[]string { return &readyOf(a).Exec }),
				meaning: "This command, written like command, exits with 0."},
			{name: "tcp", kind: text{what: "host:port", check: checkAddress},
				field:   in(func(a *Actor) *string { return &readyOf(a).TCP }),
				meaning: "Something accepts connections at host:port."},
			{name: "http", kind: text{what: "a URL of http or https", check: checkURL},
				field:   in(func(a *Actor) *string { return &readyOf(a).HTTP }),
				meaning: "This URL answers with a status from 200 to 399."},
			{name: "timeout", live: true, def: "30s", kind: duration{min: moment},
				field:   in(func(a *Actor) *time.Duration { return &readyOf(a).Timeout }),
				meaning: "The longest that becoming ready may take; then the child is stopped."},
		}},
	{name: "watchdog", live: true, told: notifies, modes: lasting, kind: duration{}, aka: []string{"watchdogsec", "liveness"},
		field:   in(func(a *Actor) *time.Duration { return &a.Watchdog }),
		meaning: "The child is killed when it shows no sign of life for so long: any request of a worker, a claim that waits, or WATCHDOG=1 by sd_notify. A daemon needs ready: {notify: true} for that, and has none from defaults. 0s is off."},
	{name: "after", live: true, kind: actorList{}, aka: []string{"depends_on", "requires", "needs", "wants"},
		field:   in(func(a *Actor) *[]string { return &a.After }),
		meaning: "Actors that must be ready before this one is started, and that are stopped after it."},
	{name: "lease", live: true,
		meaning: "The lease of a child on its slot.",
		keys: []*key{
			{name: "ttl", def: "30s", kind: duration{min: 100 * time.Millisecond},
				field:   in(func(a *Actor) *time.Duration { return &a.LeaseTTL }),
				meaning: "How long it lasts without being renewed. The supervisor renews it while the child lives."},
		}},
}

// messageKeys say what happens to messages.
var messageKeys = []*key{
	{name: "timeout", live: true, def: "10m", modes: mailboxed, kind: duration{min: moment},
		field:   in(func(a *Actor) *time.Duration { return &a.Timeout }),
		meaning: "The longest that one message may take; then the child is killed and the attempt failed."},
	{name: "progress_timeout", live: true, modes: mailboxed, kind: duration{},
		field:   in(func(a *Actor) *time.Duration { return &a.ProgressTimeout }),
		meaning: "The longest that the progress that renew reports may stay the same; then the attempt ends as no_progress and the child is killed, however faithfully it renews. 0s is off."},
	{name: "claim", live: true, modes: []Mode{Worker},
		meaning: "The claim of a worker on a message.",
		keys: []*key{
			{name: "ttl", def: "60s", kind: duration{min: moment},
				field:   in(func(a *Actor) *time.Duration { return &a.Claim.TTL }),
				meaning: "How long it lasts without being renewed."},
			{name: "renew", def: "auto", kind: choice[Renew]{words: []Renew{Auto, Manual}},
				field:   in(func(a *Actor) *Renew { return &a.Claim.Renew }),
				meaning: "auto: renewed while the process lives and is within timeout. manual: the worker renews, and a claim that it forgets expires."},
		}},
	{name: "retry", live: true, modes: mailboxed, aka: []string{"retries"},
		meaning: "What happens to a message whose attempt failed: it waits initial × factor^n, at most max, varied by ± jitter.",
		keys: append([]*key{
			{name: "max_attempts", def: "5", kind: whole[int]{1, 1_000_000}, aka: []string{"attempts", "max_retries", "limit"},
				field:   in(func(a *Actor) *int { return &a.Retry.MaxAttempts }),
				meaning: "The number of charged attempts after which the message is DEAD."},
		}, growth(duration{}, "1s", "5m", func(a *Actor) *Backoff {
			return &a.Retry.Backoff
		})...)},
	{name: "on_worker_lost", live: true, def: "retry", modes: mailboxed, kind: choice[OnWorkerLost]{words: []OnWorkerLost{RetryMessage, ParkMessage}},
		field:   in(func(a *Actor) *OnWorkerLost { return &a.OnWorkerLost }),
		meaning: "What happens to a message whose worker did not report its outcome itself. retry: at least once. park: at most once; it waits for a person."},
	{name: "inbox", live: true, modes: mailboxed, aka: []string{"queue", "mailbox"},
		meaning: "What may wait for the actor.",
		keys: []*key{
			{name: "limit", def: "100000", kind: whole[int64]{1, 1 << 40},
				field:   in(func(a *Actor) *int64 { return &a.Inbox.Limit }),
				meaning: "The number of messages NEW, CLAIMED or reserved; a send beyond it is refused."},
			{name: "max_body", def: "1MiB", kind: size{max: mib, why: ", which is as much as one transaction of the store carries"},
				field:   in(func(a *Actor) *int64 { return &a.Inbox.MaxBody }),
				meaning: "The size of one message's body; a larger one is refused."},
		}},
	{name: "retention", live: true,
		meaning: "How long what has ended is kept, and how much of it: the oldest beyond a count are removed, a sixteenth of it at a time.",
		keys: []*key{
			{name: "done", def: "24h", modes: mailboxed, kind: duration{min: moment},
				field:   in(func(a *Actor) *time.Duration { return &a.Retention.Done }),
				meaning: "Messages that are DONE."},
			{name: "dead", def: "30d", modes: mailboxed, kind: duration{min: moment},
				field:   in(func(a *Actor) *time.Duration { return &a.Retention.Dead }),
				meaning: "Messages that are DEAD."},
			{name: "events", def: "7d", kind: duration{min: moment},
				field:   in(func(a *Actor) *time.Duration { return &a.Retention.Events }),
				meaning: "The journal's events about the actor."},
			{name: "done_count", def: "100000", modes: mailboxed, kind: whole[int64]{1, 1 << 40},
				field:   in(func(a *Actor) *int64 { return &a.Retention.DoneCount }),
				meaning: "The number of messages that are DONE."},
			{name: "dead_count", def: "100000", modes: mailboxed, kind: whole[int64]{1, 1 << 40},
				field:   in(func(a *Actor) *int64 { return &a.Retention.DeadCount }),
				meaning: "The number of messages that are DEAD."},
			{name: "events_count", def: "1000000", kind: whole[int64]{1, 1 << 40},
				field:   in(func(a *Actor) *int64 { return &a.Retention.EventsCount }),
				meaning: "The number of events in the journal, those of all actors together; the largest number of any actor holds."},
		}},
	{name: "workspace", live: true, modes: []Mode{Task},
		meaning: "The empty folder of an attempt, SOVEREIGN_WORKSPACE.",
		keys: []*key{
			{name: "reclaim", def: "always", kind: choice[Reclaim]{words: []Reclaim{ReclaimAlways, ReclaimOnSuccess, ReclaimNever},
				meant: map[string]string{"on-success": "on_success"}},
				field:   in(func(a *Actor) *Reclaim { return &a.Reclaim }),
				meaning: "When it is removed: always, on_success (kept when the attempt failed) or never."},
		}},
	{name: "result", live: true, modes: []Mode{Task},
		meaning: "What a task writes to its stdout.",
		keys: []*key{
			{name: "max_size", def: "1GiB", kind: size{max: math.MaxInt64},
				field:   in(func(a *Actor) *int64 { return &a.ResultMax }),
				meaning: "The most that it may write; with more the child is killed and the attempt failed, as result_too_large. Beyond 1 MiB a result is kept in a file."},
		}},
}

// outputKeys say what becomes of a child's output.
var outputKeys = []*key{
	{name: "log", aka: []string{"logs", "logging"},
		meaning: "Where and how much of the child's output is kept.",
		keys: []*key{
			{name: "file", def: "true", kind: truth{},
				field:   in(func(a *Actor) *bool { return &a.Log.File }),
				meaning: "Whether it is written to a file under logs/."},
			{name: "max_size", live: true, def: "10MiB", kind: size{max: math.MaxInt64},
				field:   in(func(a *Actor) *int64 { return &a.Log.MaxSize }),
				meaning: "The size at which a file is rotated."},
			{name: "keep", live: true, def: "3", kind: whole[int]{0, 1000},
				field:   in(func(a *Actor) *int { return &a.Log.Keep }),
				meaning: "How many rotated files are kept besides the current one."},
		}},
}

// growth are the keys of a Backoff.
func growth(wait duration, initial, most string, of func(*Actor) *Backoff) []*key {
	return []*key{
		{name: "initial", def: initial, kind: wait,
			field:   in(func(a *Actor) *time.Duration { return &of(a).Initial }),
			meaning: "The first wait."},
		{name: "max", def: most, kind: wait,
			field:   in(func(a *Actor) *time.Duration { return &of(a).Max }),
			meaning: "The longest wait, not below initial."},
		{name: "factor", def: "2", kind: number{1, 1000},
			field:   in(func(a *Actor) *float64 { return &of(a).Factor }),
			meaning: "By how much each wait is longer than the one before."},
		{name: "jitter", def: "0.2", kind: number{0, 1},
			field:   in(func(a *Actor) *float64 { return &of(a).Jitter }),
			meaning: "The share by which a wait is varied at random, up and down."},
	}
}

// stopSignal is a signal that asks a process to end. STOP, CONT and the like
// do not; numbers differ between systems.
var stopSignal = choice[string]{
	words: []string{"TERM", "INT", "QUIT", "HUP", "KILL", "USR1", "USR2", "WINCH", "ABRT", "ALRM"},
	meant: map[string]string{
		"sigterm": "TERM", "sigint": "INT", "sigquit": "QUIT", "sighup": "HUP", "sigkill": "KILL",
		"sigusr1": "USR1", "sigusr2": "USR2", "sigwinch": "WINCH", "sigabrt": "ABRT", "sigalrm": "ALRM",
		"15": "TERM", "2": "INT", "3": "QUIT", "1": "HUP", "9": "KILL",
	},
}
