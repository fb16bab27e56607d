package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// logLine is how long a line of the part logs is, with its newline, in bytes.
const logLine = 200

// A keeper is what keeps a child's output, on the way from its stdout to a file.
type keeper struct {
	name    string
	program string // it has to be installed; "" = it is there
	// start starts the child with its keeper, and returns the keeper's process; the
	// files with the output are made in logs.
	start func(b *bench, dir, logs, child string) (*fleet, error)
}

var keepers = []keeper{
	{name: "the child itself", start: func(_ *bench, dir, logs, child string) (*fleet, error) {
		return launchProgram(dir, []string{"/bin/sh", "-c", "exec " + child + " >" + logs + "/out"})
	}},
	{name: "sovereign", start: func(b *bench, dir, _, child string) (*fleet, error) {
		return b.launch(dir, "  c:\n    mode: daemon\n    command: ["+strings.ReplaceAll(child, " ", ", ")+"]\n    restart: never\n    log: {max_size: 4GiB}\n")
	}},
	{name: "supervisord", program: "supervisord", start: func(_ *bench, dir, logs, child string) (*fleet, error) {
		file := filepath.Join(dir, "supervisord.conf")
		text := fmt.Sprintf("[supervisord]\nnodaemon=true\nlogfile=/dev/null\nlogfile_maxbytes=0\npidfile=%s/pid\n"+
			"[program:c]\ncommand=%s\nautorestart=false\nstartsecs=0\nstdout_logfile=%s/out\nstdout_logfile_maxbytes=0\n", dir, child, logs)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return nil, err
		}
		return launchProgram(dir, []string{"supervisord", "-c", file})
	}},
	{name: "svlogd", program: "svlogd", start: func(_ *bench, dir, logs, child string) (*fleet, error) {
		if err := os.WriteFile(filepath.Join(logs, "config"), []byte("s4000000000\n"), 0o600); err != nil {
			return nil, err
		}
		return launchProgram(dir, []string{"/bin/sh", "-c", child + " | svlogd -b 65536 " + logs})
	}},
	{name: "s6-log", program: "s6-log", start: func(_ *bench, dir, logs, child string) (*fleet, error) {
		return launchProgram(dir, []string{"/bin/sh", "-c", child + " | s6-log n100 s268435455 " + logs})
	}},
}

// logs measures how long a child's output takes to be in files, beside writing there
// directly.
func (b *bench) logs(ctx context.Context) error {
	fmt.Printf("%s bytes in lines of %d, written 4 KiB at a time; from the first until all are in files; %d rounds\n\n",
		strconv.FormatInt(b.output, 10), logLine, b.rounds)
	took, cpu := make([]series, len(keepers)), make([]series, len(keepers))
	for range b.rounds {
		for i, k := range keepers {
			if _, err := exec.LookPath(k.program); k.program != "" && err != nil || !strings.Contains(k.name, b.only) {
				continue
			}
			d, used, err := b.keep(ctx, k)
			if err != nil {
				return fmt.Errorf("%s: %w", k.name, err)
			}
			took[i], cpu[i] = append(took[i], d.Seconds()), append(cpu[i], used.Seconds())
		}
	}
	t := newTable("kept by", "s", "MB/s", "x the child itself", "CPU s of the keeper")
	for i, k := range keepers {
		if len(took[i]) == 0 {
			continue
		}
		ratio := "-"
		if len(took[0]) > 0 {
			ratio = figure(took[i].median() / took[0].median())
		}
		t.row(k.name, took[i].String(), figure(float64(b.output)/1e6/took[i].median()), ratio, cpu[i].String())
	}
	t.end()
	return nil
}

// keep runs one keeper, until all that its child writes is in files. used is the
// keeper's CPU time, its start included.
func (b *bench) keep(ctx context.Context, k keeper) (took, used time.Duration, err error) {
	dir, err := b.folder()
	if err != nil {
		return 0, 0, err
	}
	defer os.RemoveAll(dir) // the next one needs the room
	logs := filepath.Join(dir, "logs")
	if k.name == "sovereign" {
		logs = filepath.Join(dir, ".sovereign", "logs")
	} else if err := os.Mkdir(logs, 0o700); err != nil {
		return 0, 0, err
	}
	self, err := os.Executable()
	if err != nil {
		return 0, 0, err
	}
	child := fmt.Sprintf("%s -print %d -up %s/up", self, b.output, dir)
	f, err := k.start(b, dir, logs, child)
	if err != nil {
		return 0, 0, err
	}
	defer f.kill()
	begun, err := f.up(ctx)
	if err != nil {
		return 0, 0, err
	}
	pid, err := strconv.Atoi(begun.text)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = syscall.Kill(pid, syscall.SIGKILL) }() // where the keeper's end does not end it
	for kept(logs) < b.output {
		if time.Since(begun.at) > patience {
			return 0, 0, fmt.Errorf("%d bytes of %d are there after %s", kept(logs), b.output, patience)
		}
		if err := rest(ctx, time.Millisecond); err != nil {
			return 0, 0, err
		}
	}
	took = time.Since(begun.at)
	return took, cpuOf(tree(f.pid(), map[int]bool{pid: true})), nil
}

// kept is how many bytes of output are in the files of a folder.
func kept(logs string) (sum int64) {
	entries, _ := os.ReadDir(logs)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".idx") || e.Name() == "config" {
			continue
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			sum += info.Size()
		}
	}
	return sum
}

// printLines is the child: it says its number in the FIFO up, writes size bytes to its
// stdout, and waits to be ended.
func printLines(size int64, up string) error {
	fifo, err := os.OpenFile(up, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(os.Stdout, 4<<10)
	text := append(bytes.Repeat([]byte("x"), logLine-1), '\n')
	fmt.Fprintln(fifo, os.Getpid())
	for left := size; left > 0; left -= int64(len(text)) {
		if _, err := out.Write(text[:min(left, int64(len(text)))]); err != nil {
			return err
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	end := make(chan os.Signal, 1) // its keeper's CPU is looked at first
	signal.Notify(end, syscall.SIGTERM)
	<-end
	return nil
}
