package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/metrics"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/server"
	"github.com/sovereign-run/sovereign/store/bolt"
	"github.com/sovereign-run/sovereign/supervisor"
)

func newMetrics(s *shared) *cobra.Command {
	return &cobra.Command{
		Use:   "metrics",
		Short: "Print metrics as Prometheus reads them",
		Long: `Print what the supervisor counts and what it is at the moment, as text in the
format of Prometheus. Of a stopped store what is on record is told, such as its inboxes.
For a server that scrapes, give ` + "`run`" + ` an address with --metrics.

The names are listed in docs/operating.md. Counters start at 0 with the supervisor.`,
		Example: `  sovereign metrics
  sovereign metrics | grep inbox_messages
  sovereign metrics > /var/lib/node_exporter/textfile/sovereign.prom`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return s.metrics(cmd.Context(), streamsOf(cmd)) },
	}
}

func (s *shared) metrics(ctx context.Context, io streams) error {
	var found protocol.Metrics
	if err := s.read(ctx, protocol.MethodMetrics, protocol.Empty{}, &found); err != nil {
		return err
	}
	if s.json {
		return writeJSON(io.out, found)
	}
	_, err := fmt.Fprint(io.out, found.Text)
	return err
}

// statusFor is the status that a handler gives, for metrics.
func statusFor(handler *server.Control) func(context.Context) (protocol.Status, error) {
	return func(ctx context.Context) (protocol.Status, error) {
		found, err := handler.Handle(ctx, protocol.MethodStatus, nil)
		if err != nil {
			return protocol.Status{}, err
		}
		return found.(protocol.Status), nil
	}
}

// storeFor is the state of a store, for metrics.
func storeFor(db *bolt.DB) func() metrics.Store {
	return func() metrics.Store {
		s := db.Stats()
		full, _ := db.Full()
		return metrics.Store{Full: full, FileBytes: s.FileSize, FreeBytes: int64(s.FreePages) * int64(s.PageSize),
			Commits: s.Commits, Updates: s.Functions, Bytes: s.Bytes, LogBytes: s.LogBytes, Moves: s.Checkpoints,
			CommitTimes: metrics.Distribution(s.CommitTimes), CommitSizes: metrics.Distribution(s.CommitSizes)}
	}
}

// liveMetrics are those of a running supervisor.
func liveMetrics(db *bolt.DB, box *mailbox.Box, handler *server.Control, sup *supervisor.Supervisor, answers *server.Server) *metrics.Registry {
	return metrics.New(metrics.Source{Version: thisBuild().Version, Status: statusFor(handler), Oldest: box.Oldest,
		Messages: box.Tallies, Processes: sup.Tallies, Answered: answers.Answered, Store: storeFor(db)}, true)
}

// listenMetrics listens where run's --metrics says: on an address, or on a socket
// whose name stands after "unix:".
func listenMetrics(address string) (net.Listener, error) {
	path, isPath := strings.CutPrefix(address, "unix:")
	cannot := func(err error) error {
		return refusal.New(refusal.Failed, "listen for metrics on "+address, err.Error(),
			"give --metrics another address, as in 127.0.0.1:9464 or unix:/run/sovereign/metrics.sock").Because(err)
	}
	if !isPath {
		if _, _, err := net.SplitHostPort(address); err != nil {
			return nil, usage(fmt.Sprintf("%q is no address for metrics", cutTo(printable(address), 60)), "it is HOST:PORT, :PORT or unix:PATH",
				"--metrics 127.0.0.1:9464")
		}
		l, err := net.Listen("tcp", address)
		if err != nil {
			return nil, cannot(err)
		}
		return l, nil
	}
	if err := removeStaleSocket(path); err != nil {
		return nil, cannot(err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, cannot(err)
	}
	if err := os.Chmod(path, 0o660); err != nil {
		return nil, errors.Join(cannot(err), l.Close())
	}
	return l, nil
}

// removeStaleSocket removes a socket that nobody listens on any more, and nothing
// else.
func removeStaleSocket(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return errors.New("something that is no socket has this name")
	}
	conn, err := net.Dial("unix", path)
	if err == nil {
		_ = conn.Close()
		return errors.New("another process listens there")
	}
	return os.Remove(path)
}

// serveMetrics answers on l until ctx ends.
func serveMetrics(ctx context.Context, l net.Listener, r *metrics.Registry) error {
	mux := http.NewServeMux()
	mux.Handle("/metrics", r)
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10}
	defer context.AfterFunc(ctx, func() { _ = web.Close() })()
	if err := web.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve metrics: %w", err)
	}
	return nil
}
