package metrics

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/server"
	"github.com/sovereign-run/sovereign/supervisor"
)

// full is a source with something for every metric.
func full() Source {
	return Source{
		Version: "v1",
		Status: func(context.Context) (protocol.Status, error) {
			return protocol.Status{Supervisor: protocol.SupervisorStatus{State: "running", StartedAt: time.Unix(100, 0)},
				Actors: []protocol.ActorStatus{
					{Actor: "a", Mode: "worker", Paused: true, Inbox: protocol.Counts{New: 3, Dead: 1},
						Slots: []protocol.SlotStatus{{State: "up", Lease: &protocol.SlotLease{Token: 7}}, {State: "up"}, {State: "failed"}}},
					{Actor: "d", Mode: "daemon"},
				}}, nil
		},
		Oldest: func(context.Context) (map[string]time.Time, error) {
			return map[string]time.Time{"a": time.Now().Add(-time.Hour)}, nil
		},
		Messages: func() map[string]mailbox.Tally {
			return map[string]mailbox.Tally{"a": {Sent: 5, Claims: 4, Ends: map[mailbox.Category]uint64{mailbox.CategoryWorkerLost: 2}}}
		},
		Processes: func() map[string]supervisor.Tally {
			return map[string]supervisor.Tally{"a": {Started: 6, Restarted: 3, Ended: map[string]uint64{"signal": 2}, Logged: 10, LogLost: 1}}
		},
		Answered: func() map[server.Answered]uint64 {
			return map[server.Answered]uint64{{Method: "claim"}: 9, {Method: "complete", Refused: refusal.FencingTokenStale}: 2}
		},
		Store: func() Store {
			return Store{Full: true, FileBytes: 4096, FreeBytes: 1024, Commits: 8, Updates: 16, Bytes: 99, LogBytes: 77, Moves: 1,
				CommitTimes: Distribution{Bounds: []float64{.1, 1}, Counts: []uint64{5, 2, 1}, Sum: 3.5}}
		},
	}
}

func text(t *testing.T, from Source) string {
	t.Helper()
	var out bytes.Buffer
	if err := New(from, false).Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestWrite_TellsWhatTheSourceSays(t *testing.T) {
	got := text(t, full())
	for _, line := range []string{
		`sovereign_info{version="v1"} 1`,
		`sovereign_running 1`,
		`sovereign_start_time_seconds 100`,
		`sovereign_slots{actor="a",state="up"} 2`,
		`sovereign_slots{actor="a",state="failed"} 1`,
		`sovereign_leases{actor="a"} 1`,
		`sovereign_actor_paused{actor="a"} 1`,
		`sovereign_inbox_messages{actor="a",state="new"} 3`,
		`sovereign_inbox_messages{actor="a",state="dead"} 1`,
		`sovereign_messages_sent_total{actor="a"} 5`,
		`sovereign_claims_total{actor="a"} 4`,
		`sovereign_attempts_ended_total{actor="a",category="worker_lost"} 2`,
		`sovereign_process_starts_total{actor="a"} 6`,
		`sovereign_process_restarts_total{actor="a"} 3`,
		`sovereign_process_ends_total{actor="a",cause="signal"} 2`,
		`sovereign_log_bytes_total{actor="a"} 10`,
		`sovereign_log_lost_bytes_total{actor="a"} 1`,
		`sovereign_requests_total{method="claim",result="ok"} 9`,
		`sovereign_requests_total{method="complete",result="fencing_token_stale"} 2`,
		`sovereign_store_file_bytes 4096`,
		`sovereign_store_free_bytes 1024`,
		`sovereign_store_full 1`,
		`sovereign_store_commits_total 8`,
		`sovereign_store_updates_total 16`,
		`sovereign_store_written_bytes_total 99`,
		`sovereign_store_log_bytes_total 77`,
		`sovereign_store_checkpoints_total 1`,
		`sovereign_store_commit_seconds_bucket{le="0.1"} 5`,
		`sovereign_store_commit_seconds_bucket{le="1"} 7`,
		`sovereign_store_commit_seconds_bucket{le="+Inf"} 8`,
		`sovereign_store_commit_seconds_sum 3.5`,
	} {
		if !strings.Contains(got, line+"\n") {
			t.Errorf("missing: %s", line)
		}
	}
	if strings.Contains(got, `sovereign_inbox_messages{actor="d"`) {
		t.Error("a daemon has no inbox")
	}
	_, age, _ := strings.Cut(got, "sovereign_inbox_oldest_ready_seconds{actor=\"a\"} ")
	if !strings.HasPrefix(age, "360") {
		t.Errorf("the oldest message is an hour old, got %.10s", age)
	}
}

// The names and units follow the conventions of Prometheus, by its own linter.
func TestNames_KeepTheConventions(t *testing.T) {
	problems, err := promlint.New(strings.NewReader(text(t, full()))).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// The documentation lists every metric, and no other.
func TestNames_AreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for line := range strings.Lines(string(page)) {
		if name, ok := strings.CutPrefix(line, "| `sovereign_"); ok {
			documented = append(documented, "sovereign_"+name[:strings.IndexAny(name, "`{")])
		}
	}
	var defined []string
	for _, m := range all {
		defined = append(defined, m.name)
	}
	if !slices.Equal(defined, documented) {
		t.Errorf("docs/operating.md lists other metrics, or in another order:\n got %v\nwant %v", documented, defined)
	}
}

// What cannot be read is an error and no half of an answer.
func TestWrite_FailsWhole(t *testing.T) {
	from := full()
	from.Status = func(context.Context) (protocol.Status, error) {
		return protocol.Status{}, errors.New("the store is closed")
	}
	var out bytes.Buffer
	if err := New(from, false).Write(&out); err == nil || out.Len() > 0 {
		t.Errorf("err %v, and %d bytes were written", err, out.Len())
	}
	reply := httptest.NewRecorder()
	New(from, false).ServeHTTP(reply, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if reply.Code != http.StatusInternalServerError || !strings.Contains(reply.Body.String(), "the store is closed") {
		t.Errorf("got %d %s", reply.Code, reply.Body)
	}
}

// Example of the size: what a thousand actors cost a reader.
func BenchmarkWrite_ThousandActors(b *testing.B) {
	from := full()
	one, _ := from.Status(b.Context())
	var many protocol.Status
	many.Supervisor = one.Supervisor
	for i := range 1000 {
		a := one.Actors[0]
		a.Actor = fmt.Sprintf("actor-%d", i)
		many.Actors = append(many.Actors, a)
	}
	from.Status = func(context.Context) (protocol.Status, error) { return many, nil }
	r := New(from, true)
	for b.Loop() {
		var out bytes.Buffer
		if err := r.Write(&out); err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(out.Len()))
	}
}
