package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store/bolt"
)

type backupOptions struct {
	*shared
	force bool
}

func newBackup(s *shared) *cobra.Command {
	o := backupOptions{shared: s}
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Copy the store to a file, while it is in use",
		Long: `Write a copy of the store, consistent as of the moment it begins, to a new file.
Work goes on meanwhile. The file appears under its name once it is whole and on disk;
one that is there already is only replaced with --force.

The file holds messages, receipts and the journal; it does not hold logs, workspaces
or results that were too large for the store. ` + "`sovereign restore`" + ` makes a store of it.`,
		Example: "  sovereign backup /backup/jobs-$(date +%F).db\n  sovereign backup --data /var/lib/jobs --force /backup/jobs.db",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), streamsOf(cmd), args[0])
		},
	}
	cmd.Flags().BoolVar(&o.force, "force", false, "replace a file that is there")
	return cmd
}

// A savedStore is what backup did, as programs read it.
type savedStore struct {
	File  string `json:"file"`
	Bytes int64  `json:"bytes"`
}

func (o backupOptions) run(ctx context.Context, io streams, name string) (err error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	data := locate(o.data, os.Getenv).data
	if err := mayBecome(name, data, o.force); err != nil {
		return err
	}
	conn, err := o.connect(ctx, toRead)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()

	// 1. The copy under another name. A crash leaves that file, and nothing else.
	temp, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return cannotWrite(name, err)
	}
	defer os.Remove(temp.Name()) // of no effect once it has its own name
	out := &backupFile{File: temp, shown: newProgress(io.err, "backup", o.json)}
	err = conn.backup(ctx, data, out)
	out.shown.end()
	if err = errors.Join(err, temp.Sync(), temp.Close()); err != nil {
		return cannotWrite(name, err)
	}
	// 2. Its own name, and that on disk.
	if err := publish(temp.Name(), name, o.force); err != nil {
		return cannotWrite(name, err)
	}
	saved := savedStore{File: name, Bytes: out.done}
	if o.json {
		return writeJSON(io.out, saved)
	}
	_, err = fmt.Fprintf(io.out, "backed up %s to %s\n", size(saved.Bytes), printable(saved.File))
	return err
}

// mayBecome refuses a name that a backup may not take.
func mayBecome(name, data string, force bool) error {
	if name == "" {
		return usage("write a backup", "its name is empty", "name a file")
	}
	folder, err := os.Stat(filepath.Dir(name))
	if err == nil && !folder.IsDir() {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return mayNot("write a backup into the folder "+filepath.Dir(name), err)
	}
	if own, err := os.Stat(data); err == nil && os.SameFile(own, folder) && bolt.Owns(filepath.Base(name)) {
		return usage("write a backup to "+name, "it is a file of the store itself", "name another file")
	}
	info, err := os.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return cannotWrite(name, err)
	case !info.Mode().IsRegular():
		return usage("write a backup to "+name, "it is there, and no file", "name another file")
	case !force:
		return isThere(name)
	}
	return nil
}

func isThere(name string) error {
	return refusal.New(refusal.WrongState, "write a backup to "+name, "the file is there already", "name another file, or replace it with --force")
}

// publish gives the file temp its name and returns once that is on disk. Without
// force it replaces nothing, whoever made the file meanwhile.
func publish(temp, name string, force bool) error {
	var err error
	if force {
		err = os.Rename(temp, name)
	} else {
		err = os.Link(temp, name)
		switch {
		case errors.Is(err, fs.ErrExist):
			return isThere(name)
		case err != nil: // a file system without links
			if _, there := os.Lstat(name); there == nil {
				return isThere(name)
			}
			err = os.Rename(temp, name)
		}
	}
	if err != nil {
		return err
	}
	folder, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// cannotWrite is the refusal for a backup that could not be written.
func cannotWrite(name string, err error) error {
	if _, refused := errors.AsType[*refusal.Error](err); refused {
		return err
	}
	doing := "write a backup to " + name
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		return refusal.New(refusal.DiskFull, doing, err.Error(), "make room there, or name a file on another disk").Later().Because(err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return refusal.New(refusal.PermissionDenied, doing, err.Error(), "name a file in a folder that you may write to").Because(err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// backupFile is the copy as it is written.
type backupFile struct {
	*os.File
	shown       *progress
	done, total int64
	unsynced    int64
}

// syncEvery bounds how much of a backup waits to be written out: what piles up
// would delay the syncs of the store on the same disk.
const syncEvery = 4 << 20

func (f *backupFile) begun(size int64) { f.total = size }

func (f *backupFile) Write(b []byte) (int, error) {
	n, err := f.File.Write(b)
	f.done += int64(n)
	f.unsynced += int64(n)
	if err == nil && f.unsynced >= syncEvery {
		f.unsynced = 0
		err = f.Sync()
	}
	f.shown.show(f.done, f.total)
	return n, err
}

// backup writes a copy of the store in the folder data to out.
func (c *connection) backup(ctx context.Context, data string, out *backupFile) error {
	if c.client != nil {
		return c.client.backup(ctx, data, out)
	}
	return c.opened.db.Backup(ctx, out, filepath.Dir(out.Name()), out.begun)
}

// backup copies the file of the store in the folder data, which the supervisor
// holds meanwhile, to out. The connection is of no further use.
func (c *client) backup(ctx context.Context, data string, out *backupFile) error {
	defer c.within(ctx)()
	// 1. From here on the file is held.
	var held protocol.BackupBegun
	line, err := c.request(protocol.MethodBackup)
	if err == nil && line.Method == protocol.NotifyBackupBegun {
		err = json.Unmarshal(line.Params, &held)
	} else if err == nil {
		err = lostHold(line)
	}
	if err != nil {
		return c.explain(ctx, err)
	}
	// 2. The copy.
	file, err := os.Open(filepath.Join(data, bolt.DataFile))
	if err != nil {
		return err
	}
	defer file.Close()
	out.begun(held.Size)
	if _, err := out.Write(held.Head); err != nil {
		return err
	}
	head := int64(len(held.Head))
	if _, err := io.CopyBuffer(stoppable{ctx, out}, io.NewSectionReader(file, head, held.Size-head), make([]byte, 256<<10)); err != nil {
		return err
	}
	if out.done != held.Size {
		return fmt.Errorf("%d of %d bytes came", out.done, held.Size)
	}
	// 3. Held to the end, if the supervisor still answers, and has not said before
	// that it let go.
	line, err = c.request(protocol.MethodHello)
	if err == nil && line.Result == nil {
		err = lostHold(line)
	}
	return c.explain(ctx, err)
}

// request makes a request without params and returns the next line.
func (c *client) request(method string) (line protocol.Line, err error) {
	c.last++
	err = c.encoder.Encode(protocol.Request{JSONRPC: "2.0", ID: protocol.ID(strconv.Itoa(c.last)), Method: method, Params: json.RawMessage("{}")})
	if err != nil {
		return line, err
	}
	text, err := c.lines.Line()
	if err != nil {
		return line, err
	}
	return line, json.Unmarshal(text, &line)
}

// lostHold is the error for a supervisor that does not hold the file.
func lostHold(line protocol.Line) error {
	if line.Error != nil {
		return line.Error.Refusal()
	}
	return refusal.New(refusal.Unavailable, "the supervisor let go of the store's file before it was copied", "it is stopping",
		"start the backup again").Later()
}

// stoppable is a writer that fails once its context is done.
type stoppable struct {
	ctx context.Context
	w   io.Writer
}

func (s stoppable) Write(b []byte) (int, error) {
	if s.ctx.Err() != nil {
		return 0, context.Cause(s.ctx)
	}
	return s.w.Write(b)
}

// A progress is shown on a terminal while something takes long, and nowhere else.
type progress struct {
	w       io.Writer // nil: nowhere
	what    string
	percent int64
	things  bool // not bytes
}

func newProgress(w io.Writer, what string, quiet bool) *progress {
	if quiet || !isTerminal(w) {
		w = nil
	}
	return &progress{w: w, what: what, percent: -1}
}

func (p *progress) show(done, total int64) {
	if p.w == nil || total <= 0 {
		return
	}
	percent := done * 100 / total
	if percent == p.percent {
		return
	}
	p.percent = percent
	of := size(total)
	if p.things {
		of = strconv.FormatInt(total, 10)
	}
	fmt.Fprintf(p.w, "\r%s: %d%% of %s", p.what, percent, of)
}

// newCounter is a progress that counts things.
func newCounter(w io.Writer, what string, quiet bool) *progress {
	p := newProgress(w, what, quiet)
	p.things = true
	return p
}

// count shows how many are done where it is not known of how many.
func (p *progress) count(done int64) {
	if p.w != nil {
		p.percent = 0
		fmt.Fprintf(p.w, "\r%s: %d", p.what, done)
	}
}

// of shows how many of all are done.
func (p *progress) of(done, total int64) {
	if p.w != nil {
		p.percent = 0
		fmt.Fprintf(p.w, "\r%s: %d of %d", p.what, done, total)
	}
}

// end removes what was shown.
func (p *progress) end() {
	if p.w != nil && p.percent >= 0 {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
