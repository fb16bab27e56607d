package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sovereign-run/sovereign/conformance"
	"github.com/sovereign-run/sovereign/protocol"
)

// The product keeps every rule, seen from outside: P2, P3, P8, P10. It also judges
// one that runs already, and nothing is left behind.
func TestConformance_TheProductKeepsTheRules(t *testing.T) {
	binary := demoBinary(t)
	cmd, tmp := demoCommand(t, binary)
	cmd.Args = []string{binary, "conformance", "--json"}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var report conformanceReport
	if jsonErr := json.Unmarshal(out, &report); jsonErr != nil {
		t.Fatalf("%v, %v\n%s%s", err, jsonErr, out, stderr.String())
	}
	for _, f := range report.Rules {
		if !f.OK {
			t.Errorf("%s %s: %s", f.Property, f.Name, f.Detail)
		}
	}
	if err != nil || !report.OK || len(report.Rules) != len(conformance.Rules()) {
		t.Errorf("%v: ok %t, %d rules of %d\n%s", err, report.OK, len(report.Rules), len(conformance.Rules()), stderr.String())
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A supervisor that answers wrongly fails the rules that say so, and each rule can
// fail: between the judge and a real supervisor stands one that changes answers.
func TestConformance_WrongAnswersFailRules(t *testing.T) {
	t.Parallel()
	binary := demoBinary(t)
	for name, c := range map[string]struct {
		change func(method string, line map[string]any)
		fails  []string
		judge  []string // these alone; nil = those that must fail, and two that must not
	}{
		"accepts every settle": {
			change: func(method string, line map[string]any) {
				if line["error"] != nil && slices.Contains([]string{"complete", "fail", "release", "renew", "check"}, method) {
					delete(line, "error")
					line["result"] = map[string]any{"state": "DONE", "attempts": 1}
				}
			},
			fails: []string{"order", "claim_live", "addressee", "never_claimed", "late", "token_required", "refused_writes_nothing",
				"sticky", "other_verb", "send_whole", "fenced", "claim_fresh", "error_shape"},
		},
		"claims always succeed": {
			change: func(method string, line map[string]any) {
				if line["error"] != nil && method == "claim" {
					delete(line, "error")
					line["result"] = map[string]any{"messages": []any{map[string]any{"id": "m1", "token": 1, "attempt": 1, "body": ""}}}
				}
			},
			fails: []string{"identity", "claim_lease", "claim_live", "addressee", "one_winner", "staged", "staged_discarded", "fenced", "garbage"},
		},
		"tokens that do not grow": {
			change: deliveries(func(d map[string]any) { d["token"] = 7 }),
			fails:  []string{"claim_record", "claim_fresh", "tokens_grow", "retry", "next", "killed"},
		},
		"attempts that are not counted": {
			change: deliveries(func(d map[string]any) { d["attempt"] = 0 }),
			fails:  []string{"claim_record", "claim_fresh", "tokens_grow", "retry", "killed"},
		},
		"bodies that are cut": {
			change: deliveries(func(d map[string]any) { d["body"] = "" }),
			fails:  []string{"any_bytes"},
		},
		"nothing is ever claimed": {
			change: func(method string, line map[string]any) {
				if method == "claim" && line["result"] != nil {
					line["result"] = map[string]any{"messages": []any{}}
				}
			},
			fails: []string{"side_by_side", "request", "claim_again", "fail", "fail_dead", "release", "repeat", "settle_items", "staged_fenced", "expiry", "remaining"},
		},
		"errors without their data": {
			change: func(_ string, line map[string]any) {
				if e, ok := line["error"].(map[string]any); ok {
					delete(e, "data")
				}
			},
			fails: []string{"error_shape", "garbage", "long_line", "operators", "identity"},
		},
		"another code for everything": {
			change: func(_ string, line map[string]any) {
				if e, ok := line["error"].(map[string]any); ok {
					e["code"] = -1
				}
			},
			fails: []string{"error_shape", "garbage", "long_line", "operators"},
		},
		"identities in refusals": {
			change: func(method string, line map[string]any) {
				if e, ok := line["error"].(map[string]any); ok {
					e["message"] = currentIdentity()
				}
			},
			fails: []string{"whole_identity"},
		},
		"pings fail": {
			change: func(method string, line map[string]any) {
				if method == "ping" {
					delete(line, "result")
					line["error"] = map[string]any{"code": -32000, "message": "no", "data": map[string]any{"category": "failed"}}
				}
			},
			fails: []string{"ids", "side_by_side"},
		},
		"awaits always find the end": {
			change: func(method string, line map[string]any) {
				if method == "await" {
					delete(line, "error")
					line["result"] = map[string]any{"id": "m1", "state": "DONE", "result": "answer"}
				}
			},
			fails: []string{"await", "await_timeout", "await_gone", "await_sender", "await_fenced"},
		},
		"awaits answer those who were replaced": {
			change: func(method string, line map[string]any) {
				if e, ok := line["error"].(map[string]any); ok && method == "await" && e["data"].(map[string]any)["category"] == "actor_lease_lost" {
					delete(line, "error")
					line["result"] = map[string]any{"state": "DONE"}
				}
			},
			fails: []string{"await_fenced"},
		},
		"nothing awaited is ever gone": {
			change: func(method string, line map[string]any) {
				if r, ok := line["result"].(map[string]any); ok && method == "await" {
					delete(r, "gone")
				}
			},
			fails: []string{"await_gone"},
		},
		"renewals that shorten": {
			change: func(method string, line map[string]any) {
				if r, ok := line["result"].(map[string]any); ok && method == "renew" {
					r["remaining_ms"] = -1
				}
			},
			fails: []string{"remaining"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			rules := slices.DeleteFunc(conformance.Rules(), func(r conformance.Rule) bool { return !slices.Contains(c.fails, r.Name) })
			if len(rules) != len(c.fails) {
				t.Fatalf("%d rules of %v", len(rules), c.fails)
			}
			judgeThrough(t, binary, c.change, rules, func(f conformance.Finding) {
				if f.OK {
					t.Errorf("%s %s is said to be kept", f.Property, f.Name)
				}
			})
		})
	}
}

// deliveries is a change of each message that is handed out.
func deliveries(change func(map[string]any)) func(string, map[string]any) {
	return func(_ string, line map[string]any) {
		r, _ := line["result"].(map[string]any)
		list, _ := r["messages"].([]any)
		for _, d := range list {
			change(d.(map[string]any))
		}
	}
}

var judged struct {
	sync.Mutex
	process string // the last identity that asked
}

func currentIdentity() string {
	judged.Lock()
	defer judged.Unlock()
	return judged.process
}

// judgeThrough judges a real supervisor whose worker.sock is reached through
// change.
func judgeThrough(t *testing.T, binary string, change func(string, map[string]any), rules []conformance.Rule, found func(conformance.Finding)) {
	folder, err := os.MkdirTemp("", "conf")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	actors, err := exec.Command(binary, "conformance", "actors").Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "actors.yaml"), actors, 0o644); err != nil {
		t.Fatal(err)
	}
	gate, err := openConformanceGate(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer gate.close()
	cmd := exec.Command(binary, "run", "actors.yaml")
	cmd.Dir, cmd.Env = folder, append(demoEnviron(os.Environ()), "GORACE=atexit_sleep_ms=0")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	}()
	sys := gate.system(placeOf(filepath.Join(folder, conformanceData)))
	dial := sys.Dial
	sys.Dial = func(ctx context.Context) (net.Conn, error) {
		conn, err := dial(ctx)
		if err != nil {
			return nil, err
		}
		judge, proxy := net.Pipe()
		go tamper(proxy, conn, change)
		return judge, nil
	}
	if err := conformance.Judge(t.Context(), sys, rules, found); err != nil {
		t.Fatal(err)
	}
}

// tamper passes requests on, and answers as change makes them.
func tamper(judge, real net.Conn, change func(string, map[string]any)) {
	defer judge.Close()
	defer real.Close()
	var mu sync.Mutex // guards methods
	methods := map[protocol.ID]string{}
	go func() { // ends with judge
		defer real.Close()
		for in := protocol.NewDecoder(judge); ; {
			line, err := in.Line()
			long := err == protocol.ErrLineTooLong
			if long {
				line = []byte(strings.Repeat("x", protocol.MaxLine+1))
			} else if err != nil {
				return
			}
			var req struct {
				ID     protocol.ID
				Method string
				Params struct{ Process string }
			}
			if !long && json.Unmarshal(line, &req) == nil {
				mu.Lock()
				methods[req.ID] = req.Method
				mu.Unlock()
				if req.Params.Process != "" {
					judged.Lock()
					judged.process = req.Params.Process
					judged.Unlock()
				}
			}
			if _, err := real.Write(append(bytes.Clone(line), '\n')); err != nil {
				return
			}
		}
	}()
	for out := protocol.NewDecoder(real); ; {
		text, err := out.Line()
		if err != nil {
			return
		}
		var id struct{ ID protocol.ID }
		var line map[string]any
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		if json.Unmarshal(text, &id) != nil || d.Decode(&line) != nil {
			return
		}
		mu.Lock()
		method := methods[id.ID]
		mu.Unlock()
		change(method, line)
		b, err := json.Marshal(line)
		if err != nil {
			return
		}
		if _, err := judge.Write(append(b, '\n')); err != nil {
			return
		}
	}
}
