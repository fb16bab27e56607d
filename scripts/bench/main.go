package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A bench is one run of the program: its sizes, and where it works.
type bench struct {
	sovereign  string // the program under test
	natsServer string // the server of NATS; empty without
	pgPrograms string // the folder with those of PostgreSQL; empty without
	dir        string // scratch, removed at the end
	rounds     int
	only       string // of the rows of several parts, those whose names contain it

	alone    int // round trips of one client, each round
	crowd    int // messages of the 64 + 64 clients, each round
	kills    int // of the redelivery, for each row
	backlog  int
	actors   []int
	idle     time.Duration
	restarts int
	tasks    int
	stores   []int         // waiting messages of large stores
	waiting  int           // of a backlog
	drains   int           // of these, at most so many
	output   int64         // bytes that a child writes, in logs
	clients  []int         // in clients
	sizes    []int         // of bodies, in bytes
	volume   int           // bytes that bodies and latency pass at most in a round
	bulk     int           // messages of a bulk send, in latency
	calm     time.Duration // how long latency watches what does not end by itself
	backlogs []int         // messages that wait, in growth
}

// headroom is memory that is never touched and that the garbage collector counts, as much
// as `sovereign run` keeps: the mailbox in process is measured with what it has there, and
// the clients of all systems, which are in this process too, with as much.
const headroom = 6 << 20

func main() {
	room := make([]byte, headroom)
	defer runtime.KeepAlive(room)
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	b := bench{rounds: 3, alone: 1000, crowd: 20_000, kills: 100, backlog: 100_000,
		actors: []int{1, 100, 1000}, idle: time.Minute, restarts: 50, tasks: 2000, stores: []int{0, 100_000, 1_000_000},
		waiting: 1_000_000, drains: 200_000, output: 1e9,
		clients: []int{1, 8, 64, 256, 1000}, sizes: []int{100, 1 << 10, 16 << 10, 128 << 10, 1 << 20}, volume: 256e6,
		bulk: 100_000, calm: 10 * time.Second, backlogs: []int{0, 100_000, 1_000_000}}
	parts := flag.String("part", "trips,redelivery,idle,supervisors,logs,tasks,cost,large,backlog,clients,bodies,recipients,latency,growth", "what to measure, with commas between")
	quick := flag.Bool("quick", false, "small sizes: does it run, not how fast")
	scratch := flag.String("dir", os.TempDir(), "where the scratch folder is made: on the disk to be measured")
	flag.StringVar(&b.sovereign, "sovereign", "", "the program under test (scripts/bench/run builds it)")
	flag.StringVar(&b.natsServer, "nats", "", "the server of NATS, 2.10 or later (scripts/bench/run builds it)")
	flag.StringVar(&b.only, "only", "", "of trips, supervisors, logs, backlog, clients and bodies, only those whose names contain this")
	flag.IntVar(&b.rounds, "rounds", b.rounds, "rounds of each system in trips and tasks")
	flag.IntVar(&b.alone, "alone", b.alone, "round trips of one client in each round")
	flag.IntVar(&b.crowd, "crowd", b.crowd, "messages of 64 + 64 clients in each round")
	flag.Func("actors", "how many actors the supervisors of idle and supervisors have, with commas between (default 1,100,1000)", b.parseActors)
	flag.IntVar(&b.restarts, "restarts", b.restarts, "restarts of children in idle and supervisors")
	flag.DurationVar(&b.idle, "idle", b.idle, "how long the idle supervisor is watched")
	flag.Int64Var(&b.output, "output", b.output, "bytes that a child writes in logs")
	huge := flag.Bool("huge", false, "let growth go on to 10,000,000 messages, which takes 3 GB and many minutes")
	printed := flag.Int64("print", 0, "be the child of logs: write so many bytes")
	up := flag.String("up", "", "of -print, the FIFO to speak to")
	kept := flag.Int("keep", 0, "be the bare loop of supervisors: keep so many children, each the program that is the argument")
	flag.Parse()
	if *kept > 0 {
		return keepBare(*kept, flag.Arg(0))
	}
	if *printed > 0 {
		return printLines(*printed, *up)
	}
	if *quick {
		b.rounds, b.alone, b.crowd, b.kills, b.backlog = 1, 100, 1000, 10, 2000
		b.actors, b.idle, b.restarts, b.tasks = []int{1, 20}, 2*time.Second, 5, 100
		b.stores = []int{0, 2000}
		b.waiting, b.drains, b.output = 5000, 1000, 1e7
		b.clients, b.volume, b.bulk, b.calm, b.backlogs = []int{1, 8, 64}, 4e6, 2000, time.Second, []int{0, 2000}
	}
	if *huge {
		b.backlogs = append(b.backlogs, 10_000_000)
	}
	if b.sovereign == "" {
		return errors.New("-sovereign is not given: use scripts/bench/run, which builds it")
	}
	var err error
	if b.sovereign, err = filepath.Abs(b.sovereign); err != nil {
		return err
	}
	if b.natsServer != "" {
		if b.natsServer, err = filepath.Abs(b.natsServer); err != nil {
			return err
		}
	}
	b.pgPrograms = pgPrograms()
	// A short name: the paths of sockets are limited.
	if b.dir, err = os.MkdirTemp(*scratch, "sb"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	fmt.Printf("%s, %d cores, %s, load average %s\n", time.Now().Format("2006-01-02 15:04"), runtime.NumCPU(), runtime.Version(), load())
	all := map[string]func(context.Context) error{
		"trips": b.trips, "redelivery": b.redelivery, "idle": b.idleActors, "supervisors": b.supervisors, "logs": b.logs, "tasks": b.taskRate, "cost": b.cost, "large": b.largeStores, "backlog": b.waitingMillion,
		"clients": b.manyClients, "bodies": b.bodies, "recipients": b.recipients, "latency": b.latency, "growth": b.growth}
	for part := range strings.SplitSeq(*parts, ",") {
		measure, ok := all[part]
		if !ok {
			return fmt.Errorf("there is no part %q; see go doc ./scripts/bench", part)
		}
		fmt.Printf("\n## %s, load average %s\n\n", part, load())
		if err := measure(ctx); err != nil {
			return fmt.Errorf("%s: %w", part, err)
		}
	}
	fmt.Printf("\nload average at the end %s\n", load())
	return nil
}

// parseActors takes sizes with commas between.
func (b *bench) parseActors(text string) error {
	b.actors = nil
	for size := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(size)
		if err != nil {
			return err
		}
		b.actors = append(b.actors, n)
	}
	return nil
}

// folder makes a new folder in the scratch folder.
func (b *bench) folder() (string, error) { return os.MkdirTemp(b.dir, "r") }

// load is the machine's load average over 1 minute, "?" where it cannot be told.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "?"
	}
	one, _, _ := strings.Cut(string(text), " ")
	return one
}
