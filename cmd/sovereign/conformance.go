package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/sovereign-run/sovereign/conformance"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/server"
)

// gateSock is where the workers come to be judged with: in the folder of
// actors.yaml, which is their working folder.
const gateSock = "conformance.sock"

func newConformance(s *shared) *cobra.Command {
	o := conformanceOptions{shared: s}
	cmd := &cobra.Command{
		Use:   "conformance",
		Short: "Check the rules of the worker protocol from outside",
		Long: `Ask a running supervisor, over its sockets, whatever the contract has a rule for,
and compare its answers: claims, settles, expiry, staged sends, killed workers,
refused tokens, garbage. Print each rule with what was found instead where it was
not kept; the exit status is then 1.

Without --data a supervisor of this program is started in a temporary folder, with
real worker processes. With --data the one that runs there is judged, of whatever
version or engine: its actors.yaml must hold the actors that "conformance actors"
prints. Their workers are restarted, and one of them is killed several times.`,
		Example: "  sovereign conformance\n  sovereign conformance actors >actors.yaml && sovereign run actors.yaml &\n" +
			"  sovereign conformance --data .sovereign --json | jq '.rules[] | select(.ok | not)'",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), streamsOf(cmd)) },
	}
	cmd.AddCommand(newConformanceActors(), newConformanceWorker())
	return cmd
}

func newConformanceActors() *cobra.Command {
	return &cobra.Command{
		Use:   "actors",
		Short: "Print the actors.yaml of a supervisor that can be judged",
		Long: `Print the actors that "sovereign conformance --data" needs, with this program as
their worker. To judge another supervisor let it run them, in a store of its own.`,
		Example: "  sovereign conformance actors >actors.yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			text, err := conformanceActors()
			if err != nil {
				return err
			}
			_, err = io.WriteString(cmd.OutOrStdout(), text)
			return err
		},
	}
}

func newConformanceWorker() *cobra.Command {
	return &cobra.Command{
		Use:    "worker",
		Short:  "One worker of a supervisor that is judged",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE:   func(*cobra.Command, []string) error { return conformanceWork() },
	}
}

// conformanceWork hands the channel of this process to the judge. Where nobody
// judges it waits for the end of its channel, or of itself.
func conformanceWork() error {
	fd, err := strconv.Atoi(os.Getenv("SOVEREIGN_FD"))
	if err != nil {
		return usage("this is a part of `sovereign conformance`", "SOVEREIGN_FD is not set", "run `sovereign conformance`")
	}
	syscall.CloseOnExec(fd)
	file := os.NewFile(uintptr(fd), "sovereign")
	channel, err := net.FileConn(file) // a duplicate
	if err != nil {
		return fmt.Errorf("use the worker's channel: %w", err)
	}
	_ = file.Close()
	defer channel.Close()
	gate, err := net.Dial("unix", gateSock)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		_, err = io.Copy(io.Discard, channel)
		return err
	}
	if err != nil {
		return fmt.Errorf("reach the judge: %w", err)
	}
	defer gate.Close()
	return conformance.Relay(os.Getenv, os.Getpid(), gate, channel)
}

const conformanceActorsYAML = `version: 1
data: %[1]s
defaults:
  command: [%[2]s, conformance, worker]
  mode: worker
  stop: {timeout: 2s}
  backoff: {initial: 50ms, max: 50ms, jitter: 0}
  intensity: {restarts: 1000}
  retry: {max_attempts: %[3]d, initial: 0s}
  timeout: 2h
actors:
  work:  {replicas: %[4]d, claim: {ttl: %[7]s, renew: manual}}
  brief: {replicas: %[5]d, claim: {ttl: %[8]s, renew: manual}}
  other: {replicas: %[6]d, claim: {ttl: %[7]s, renew: manual}}
`

const conformanceData = ".sovereign"

func conformanceActors() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	quoted, err := json.Marshal(self) // a JSON string is a YAML one
	if err != nil {
		return "", err
	}
	n := conformance.Slots
	return fmt.Sprintf(conformanceActorsYAML, conformanceData, quoted, conformance.Attempts,
		n[conformance.Work], n[conformance.Brief], n[conformance.Other], conformance.LongTTL, conformance.BriefTTL), nil
}

type conformanceOptions struct{ *shared }

// A conformanceReport is what was found, as programs read it.
type conformanceReport struct {
	OK    bool                  `json:"ok"`
	Rules []conformance.Finding `json:"rules"`
}

// conformanceLimit is the longest that all rules together may take. It takes
// some seconds.
const conformanceLimit = 10 * time.Minute

func (o conformanceOptions) run(ctx context.Context, io streams) (err error) {
	ctx, restore := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	defer restore()
	ctx, cancel := context.WithTimeoutCause(ctx, conformanceLimit, errors.New("it took longer than "+conformanceLimit.String()))
	defer cancel()
	var findings []conformance.Finding
	found := func(f conformance.Finding) { findings = append(findings, f) }
	if o.data != "" {
		err = judgeRunning(ctx, placeOf(o.data), found)
	} else {
		err = judgeOwn(ctx, found)
	}
	if err != nil {
		return err
	}
	report := conformanceReport{OK: !slices.ContainsFunc(findings, func(f conformance.Finding) bool { return !f.OK }), Rules: findings}
	if o.json {
		err = writeJSON(io.out, report)
	} else {
		err = report.print(io)
	}
	if err == nil && !report.OK {
		err = statusError{status: exitFailed}
	}
	return err
}

func (r conformanceReport) print(io streams) error {
	t := table{columns: []column{{name: "RULE", gives: 1}, {name: "NAME"}, {name: "KEPT"}, {name: "WHAT", gives: 9}}}
	kept := int64(0)
	for _, f := range r.Rules {
		verdict := "FAILED"
		if f.OK {
			verdict = "ok"
			kept++
		}
		t.add(f.Property, f.Name, verdict, f.What)
	}
	if err := t.write(io.out, terminalWidth(io.out)); err != nil {
		return err
	}
	for _, f := range r.Rules {
		if !f.OK {
			if _, err := fmt.Fprintf(io.out, "\n%s %s: %s\n", f.Property, f.Name, printable(f.Detail)); err != nil {
				return err
			}
		}
	}
	_, err := fmt.Fprintf(io.out, "\n%d of %s kept\n", kept, plural(int64(len(r.Rules)), "rule"))
	return err
}

// judgeOwn judges a supervisor of this program that it starts in a temporary
// folder. When it returns no process is left, and no folder.
func judgeOwn(ctx context.Context, found func(conformance.Finding)) (err error) {
	folder, err := demoFolder()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	text, err := conformanceActors()
	if err != nil {
		return err
	}
	if err := writeNew(filepath.Join(folder, "actors.yaml"), text, 0o644); err != nil {
		return err
	}
	gate, err := openConformanceGate(folder)
	if err != nil {
		return err
	}
	defer gate.close()
	supervisor, err := startDemoSupervisor(folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, supervisor.stop()) }()
	alive, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() { // ends with the supervisor, which is stopped before we return
		<-supervisor.done
		cancel(fmt.Errorf("the supervisor has ended: %w", supervisor.err))
	}()
	// Its first worker is there once its sockets are.
	return conformance.Judge(alive, gate.system(placeOf(filepath.Join(folder, conformanceData))), conformance.Rules(), found)
}

// judgeRunning judges the supervisor that runs on a store, with workers that
// begin after the judge has.
func judgeRunning(ctx context.Context, at place, found func(conformance.Finding)) error {
	conn, err := server.Dial(at.data)
	if err != nil {
		return err
	}
	operator := newClient(conn)
	defer operator.Close()
	var status protocol.Status
	if err := operator.call(ctx, protocol.MethodStatus, protocol.StatusParams{}, &status); err != nil {
		return err
	}
	for actor := range conformance.Slots {
		if !slices.ContainsFunc(status.Actors, func(a protocol.ActorStatus) bool { return a.Actor == actor }) {
			return refusal.New(refusal.UnknownActor, "judge the supervisor of "+at.data, "it has no actor "+actor,
				"let it run what `sovereign conformance actors` prints")
		}
	}
	gate, err := openConformanceGate(filepath.Dir(status.Supervisor.Config))
	if err != nil {
		return err
	}
	defer gate.close()
	for actor := range conformance.Slots {
		if err := operator.call(ctx, protocol.MethodActorRestart, protocol.ActorParams{Actor: actor}, nil); err != nil {
			return err
		}
	}
	return conformance.Judge(ctx, gate.system(at), conformance.Rules(), found)
}

// A conformanceGate is where the workers come.
type conformanceGate struct {
	listener *net.UnixListener
	workers  chan *conformance.Worker
	closed   chan struct{}
}

func openConformanceGate(folder string) (*conformanceGate, error) {
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(folder, gateSock), Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen for the workers: %w", err)
	}
	g := &conformanceGate{listener: listener, workers: make(chan *conformance.Worker), closed: make(chan struct{})}
	go g.accept() // ends with close
	return g, nil
}

func (g *conformanceGate) accept() {
	for {
		conn, err := g.listener.Accept()
		if err != nil {
			return
		}
		go func() { // ends when the worker says who it is, or dies
			if w, err := conformance.Accept(conn); err == nil {
				select {
				case g.workers <- w:
				case <-g.closed:
					_ = conn.Close()
				}
			}
		}()
	}
}

func (g *conformanceGate) close() {
	close(g.closed)
	_ = g.listener.Close()
}

func (g *conformanceGate) system(at place) conformance.System {
	return conformance.System{
		Dial:     func(context.Context) (net.Conn, error) { return server.DialSocket(at.worker) },
		Operator: func(context.Context) (net.Conn, error) { return server.Dial(at.data) },
		Workers:  g.workers,
		Kill:     func(pid int) error { return syscall.Kill(pid, syscall.SIGKILL) },
	}
}
