package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sovereign-run/sovereign/protocol"
)

// gatherFor bounds the time that one collection takes of a busy supervisor.
const gatherFor = 10 * time.Second

// A collector reads its source each time that it is collected.
type collector struct{ from Source }

func (collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range all {
		to <- d.desc
	}
}

func (c collector) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), gatherFor)
	defer cancel()
	out := sink{to}
	out.put(info, 1, c.from.Version)
	out.store(c.from.Store())
	status, err := c.from.Status(ctx)
	if err != nil {
		to <- prometheus.NewInvalidMetric(slots.desc, err)
		return
	}
	out.status(status)
	if c.from.Oldest != nil {
		oldest, err := c.from.Oldest(ctx)
		if err != nil {
			to <- prometheus.NewInvalidMetric(inboxOldest.desc, err)
			return
		}
		for _, a := range status.Actors {
			if !hasInbox(a) {
				continue
			}
			age := 0.0
			if sent, ok := oldest[a.Actor]; ok {
				age = max(0, time.Since(sent).Seconds())
			}
			out.put(inboxOldest, age, a.Actor)
		}
	}
	out.counts(c.from)
}

// A sink takes metrics.
type sink struct{ to chan<- prometheus.Metric }

func (s sink) put(m metric, value float64, labels ...string) {
	s.to <- prometheus.MustNewConstMetric(m.desc, m.kind, value, labels...)
}

func (s sink) histogram(m metric, d Distribution) {
	upTo := make(map[float64]uint64, len(d.Bounds))
	var all uint64
	for i, n := range d.Counts {
		all += n
		if i < len(d.Bounds) {
			upTo[d.Bounds[i]] = all
		}
	}
	s.to <- prometheus.MustNewConstHistogram(m.desc, all, d.Sum, upTo)
}

func (s sink) store(st Store) {
	s.put(storeFile, float64(st.FileBytes))
	s.put(storeFree, float64(st.FreeBytes))
	full := 0.0
	if st.Full {
		full = 1
	}
	s.put(storeFull, full)
	s.put(storeCommits, float64(st.Commits))
	s.put(storeUpdates, float64(st.Updates))
	s.put(storeWritten, float64(st.Bytes))
	s.put(storeLogged, float64(st.LogBytes))
	s.put(storeMoves, float64(st.Moves))
	s.histogram(storeTimes, st.CommitTimes)
	s.histogram(storeSizes, st.CommitSizes)
}

func (s sink) status(st protocol.Status) {
	up := 0.0
	if st.Supervisor.State == protocol.SupervisorRunning {
		up = 1
	}
	s.put(running, up)
	if !st.Supervisor.StartedAt.IsZero() {
		s.put(started, float64(st.Supervisor.StartedAt.UnixMilli())/1000)
	}
	for _, a := range st.Actors {
		paused := 0.0
		if a.Paused {
			paused = 1
		}
		s.put(actorPaused, paused, a.Actor)
		if hasInbox(a) {
			in := a.Inbox
			for state, n := range map[string]int64{"new": in.New, "claimed": in.Claimed, "done": in.Done, "dead": in.Dead, "parked": in.Parked} {
				s.put(inboxMessages, float64(n), a.Actor, state)
			}
		}
		by := map[protocol.SlotState]int{}
		leases := 0
		for _, slot := range a.Slots {
			by[slot.State]++
			if slot.Lease != nil {
				leases++
			}
		}
		for state, n := range by {
			s.put(slots, float64(n), a.Actor, string(state))
		}
		s.put(slotLeases, float64(leases), a.Actor)
	}
}

// hasInbox reports whether messages can be sent to an actor. Of a stopped store it
// is not known, and may be.
func hasInbox(a protocol.ActorStatus) bool { return a.Mode != "daemon" }

func (s sink) counts(from Source) {
	if from.Messages != nil {
		for actor, t := range from.Messages() {
			s.put(sends, float64(t.Sent), actor)
			s.put(claims, float64(t.Claims), actor)
			for category, n := range t.Ends {
				s.put(attempts, float64(n), actor, string(category))
			}
		}
	}
	if from.Processes != nil {
		for actor, t := range from.Processes() {
			s.put(processStarts, float64(t.Started), actor)
			s.put(processRestarts, float64(t.Restarted), actor)
			for cause, n := range t.Ended {
				s.put(processEnds, float64(n), actor, cause)
			}
			s.put(logBytes, float64(t.Logged), actor)
			s.put(logLost, float64(t.LogLost), actor)
		}
	}
	if from.Answered != nil {
		for a, n := range from.Answered() {
			result := string(a.Refused)
			if result == "" {
				result = "ok"
			}
			s.put(requests, float64(n), a.Method, result)
		}
	}
}
