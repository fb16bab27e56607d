package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/interrupt"
	"github.com/sovereign-run/sovereign/store/bolt"
)

type runOptions struct {
	*shared
	logFormat string
	metrics   string
	verbose   bool
	drain     bool
}

func newRun(s *shared) *cobra.Command {
	o := runOptions{shared: s}
	cmd := &cobra.Command{
		Use:   "run actors.yaml",
		Short: "Supervise the actors of a file, in the foreground",
		Long: `Start the actors of the file and supervise them until told to stop. What the
children write is shown with the name of their actor in front, and kept in logs/ in
the store's folder.

SIGINT (Ctrl-C), SIGTERM and SIGHUP (the terminal was closed) stop everything in
order: workers are told, given their stop.timeout, then killed with all that they
started; the exit status is 0. A second SIGINT or SIGTERM kills at once. Under nohup
SIGHUP stays ignored. A service has the file read again by SIGHUP instead, as by
reload: one that NOTIFY_SOCKET was given to, or that has no terminal.

What a supervisor that was killed left behind is ended and recovered before
anything is started. With --drain it ends once no declared actor has a message
that waits or runs: exit status 0, or 1 if any became DEAD or PARKED meanwhile or
if what is left belongs to actors that nobody works for. Where nothing runs for a
while it logs what it waits for, and when that is due; stopped by a signal before
that, with 0, it logs how many messages are left.`,
		Example: `  sovereign run actors.yaml
  sovereign run actors.yaml --drain
  sovereign run /etc/jobs/actors.yaml --data /var/lib/jobs --log-format json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), streamsOf(cmd), args[0]) },
	}
	cmd.Flags().StringVar(&o.logFormat, "log-format", "text", "text or json: how the supervisor's own log, and its children's lines, are written")
	cmd.Flags().StringVar(&o.metrics, "metrics", "", "serve metrics for Prometheus at http://`ADDR`/metrics; ADDR is HOST:PORT, :PORT or unix:PATH")
	cmd.Flags().BoolVarP(&o.verbose, "verbose", "v", false, "log every step")
	cmd.Flags().BoolVar(&o.drain, "drain", false, "end once nothing is left to do")
	_ = cmd.RegisterFlagCompletionFunc("log-format", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o runOptions) run(ctx context.Context, io streams, path string) (err error) {
	defer runtime.KeepAlive(headroom())
	said, log, err := o.notices(io.err)
	if err != nil {
		return err
	}
	defer closeSoon(said.close)
	io.err = said
	from, err := sourceOf(path, o.data)
	if err != nil {
		return err
	}
	file, err := loadFor(takeoverOf(ctx), from)
	if err != nil {
		return err
	}
	from.path = file.Path // whatever the working directory becomes
	if locate(file.Data, os.Getenv).inherited.Process != "" {
		return orphaned(nil)
	}
	var options bolt.Options
	if t := takeoverOf(ctx); t != nil {
		if err := t.sound(file); err != nil {
			return err
		}
		if t.thread == nil {
			t.done.Store(true)
			return nil
		}
		if options.Lock, err = t.lock(); err != nil {
			return err
		}
	}
	db, err := openUnlessStopped(ctx, file.Data, options)
	if db == nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return o.serve(ctx, io, said, file, from, db, log)
}

// openUnlessStopped opens the store, which may wait for whoever has it. A SIGINT or SIGTERM
// that comes meanwhile is a clean stop (P6) at once, before anything is started: then db is
// nil, and err too. What is caught here and ends nothing yet is heeded by serve.
func openUnlessStopped(ctx context.Context, data string, options bolt.Options) (db *bolt.DB, err error) {
	if takeoverOf(ctx) != nil { // its signals are caught, and its store is another program's
		return openAlone(ctx, data, options)
	}
	early = interruptionsOf(interrupt.Catch())
	opening, opened := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer opened()
	db, err = openAlone(opening, data, options)
	if opening.Err() == nil || ctx.Err() != nil {
		return db, err
	}
	if db != nil {
		err = db.Close()
		return nil, err
	}
	return nil, nil // whatever the opening said of its end
}

// loadFor reads the file, unless this program goes on where it was: as it was.
func loadFor(t *takeover, from source) (*config.File, error) {
	if t != nil && t.Failure != nil {
		return &config.File{Path: t.Config, Data: t.Data, Actors: t.Supervisor.Specs()}, nil
	}
	return from.load()
}

// notices are what the supervisor says of itself on w, with its log.
func (o runOptions) notices(w io.Writer) (*notices, *slog.Logger, error) {
	colour := colourful(w)
	n := newNotices(w, func(lines int64) []byte {
		var b bytes.Buffer
		if log, err := o.logger(&b, colour); err == nil {
			log.Warn("lines of this log were lost, for nobody read them", "lines", lines)
		}
		return b.Bytes()
	})
	log, err := o.logger(n, colour)
	return n, log, err
}

// logger is the log of the supervisor itself.
func (o runOptions) logger(w io.Writer, colour bool) (*slog.Logger, error) {
	level := slog.LevelInfo
	if o.verbose {
		level = slog.LevelDebug
	}
	switch o.logFormat {
	case "text":
		return slog.New(newTextLog(w, level, colour)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level})), nil
	default:
		return nil, usage(fmt.Sprintf("%q is no log format", cutTo(printable(o.logFormat), 40)), "the formats are text and json", "--log-format text")
	}
}
