package metrics

import "github.com/prometheus/client_golang/prometheus"

// A metric is one name with its meaning.
type metric struct {
	name   string
	help   string
	kind   prometheus.ValueType
	labels []string
	desc   *prometheus.Desc
}

// all are the metrics, in the order of the documentation.
var all []metric

func gauge(name, help string, labels ...string) metric {
	return define(prometheus.GaugeValue, name, help, labels)
}

func counter(name, help string, labels ...string) metric {
	return define(prometheus.CounterValue, name, help, labels)
}

// histogram is put by sink.histogram, and its kind is not asked for.
func histogram(name, help string) metric {
	return define(prometheus.UntypedValue, name, help, nil)
}

func define(kind prometheus.ValueType, name, help string, labels []string) metric {
	name = "sovereign_" + name
	m := metric{name: name, help: help, kind: kind, labels: labels, desc: prometheus.NewDesc(name, help, labels, nil)}
	all = append(all, m)
	return m
}

var (
	info    = gauge("info", "The program; always 1.", "version")
	running = gauge("running", "1 while the supervisor runs, 0 for a stopped store or one that is stopping.")
	started = gauge("start_time_seconds", "When the supervisor was started, in seconds since 1970.")

	slots           = gauge("slots", "Slots, by state (docs/states.md).", "actor", "state")
	slotLeases      = gauge("leases", "Slots whose lease is held.", "actor")
	processStarts   = counter("process_starts_total", "Processes started.", "actor")
	processRestarts = counter("process_restarts_total", "Of these, long-lived ones that replaced another.", "actor")
	processEnds     = counter("process_ends_total", "Processes ended, by cause: exit_zero, exit_nonzero and signal for those that ended by themselves, "+
		"and what they were ended for: stop, stop_timeout, timeout, cancel, watchdog, not_ready, no_progress, result_too_large.", "actor", "cause")

	actorPaused   = gauge("actor_paused", "1 while deliveries to the actor are paused.", "actor")
	inboxMessages = gauge("inbox_messages", "Messages in the inbox, by state.", "actor", "state")
	inboxOldest   = gauge("inbox_oldest_ready_seconds", "Age of the oldest message that is ready and not claimed; 0 where there is none.", "actor")
	sends         = counter("messages_sent_total", "Messages that became visible in the inbox.", "actor")
	claims        = counter("claims_total", "Claims granted: attempts begun.", "actor")
	attempts      = counter("attempts_ended_total", "Attempts ended, by receipt category (docs/interface.md).", "actor", "category")

	requests = counter("requests_total", "Requests answered on all sockets, by method and result: ok or the category of the refusal. "+
		"A settle counts once for each item.", "method", "result")

	storeCommits = counter("store_commits_total", "Commits: each one write of all updates that waited for it, with its sync but where all are claims.")
	storeUpdates = counter("store_updates_total", "Updates committed. Divided by the commits, how many share one.")
	storeWritten = counter("store_written_bytes_total", "Bytes of keys and values that updates wrote.")
	storeLogged  = counter("store_log_bytes_total", "Bytes written to the log in front of mailbox.db.")
	storeMoves   = counter("store_checkpoints_total", "Moves of that log into mailbox.db.")
	storeTimes   = histogram("store_commit_seconds", "Time until a commit could be answered, without the wait for its turn.")
	storeSizes   = histogram("store_commit_updates", "Updates in a commit.")
	storeFile    = gauge("store_file_bytes", "Size of mailbox.db.")
	storeFree    = gauge("store_free_bytes", "Of these, free for what comes next.")
	storeFull    = gauge("store_full", "1 while updates that can wait are refused for want of room on its disk.")

	logBytes = counter("log_bytes_total", "Bytes of output kept in log files.", "actor")
	logLost  = counter("log_lost_bytes_total", "Bytes of output that could not be kept.", "actor")
)
