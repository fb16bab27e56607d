package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/worker/python"
)

func newInit() *cobra.Command {
	var inPython bool
	cmd := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Write a small working actors.yaml and a worker",
		Long: `Write a small working actors.yaml and the worker that it runs into DIR (default:
the current folder), and say what to run next. Nothing that exists is
overwritten. The worker is a shell script that is run for each message; with
--python one that stays, and beside it sovereign.py, the SDK that it imports.`,
		Example: "  sovereign init\n  sovereign init greeter && cd greeter && sovereign run actors.yaml\n  sovereign init --python greeter",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			files := starters()
			if inPython {
				files = pythonStarters()
			}
			return initialize(cmd.OutOrStdout(), argOr(args, "."), files)
		},
	}
	cmd.Flags().BoolVar(&inPython, "python", false, "a worker in Python that stays, and the SDK for it")
	return cmd
}

// argOr is the first argument, or other where there is none.
func argOr(args []string, other string) string {
	if len(args) == 0 {
		return other
	}
	return args[0]
}

// A starter is one file of a new project.
type starter struct {
	name string
	mode fs.FileMode
	text string
}

func starters() []starter {
	return []starter{
		{"actors.yaml", 0o644, `# Who works here. Every key: ` + "`sovereign check --keys`; checked by `sovereign check actors.yaml`" + `.
version: 1
actors:
  hello:
    command: [./hello.sh]      # run once for each message
    timeout: 1m                # the longest that one message may take
    retry: {max_attempts: 3}   # then it is DEAD, and waits for you in the inbox
`},
		{"hello.sh", 0o755, `#!/bin/sh
# One message: its body is on stdin. What goes to stdout is its result, stderr is
# the log. Exit 0 completes it; 75 asks for it later, 65 says that it is bad;
# anything else fails this attempt, and it is tried again.
set -eu
name=$(cat)
echo "greeting $name: message $SOVEREIGN_MESSAGE_ID, attempt $SOVEREIGN_ATTEMPT" >&2
echo "Hello, $name!"
`},
	}
}

func pythonStarters() []starter {
	return []starter{
		{"actors.yaml", 0o644, `# Who works here. Every key: ` + "`sovereign check --keys`; checked by `sovereign check actors.yaml`" + `.
version: 1
actors:
  hello:
    command: [./hello.py]
    mode: worker               # stays, and claims one message after the other
    ready: {notify: true}      # up once its loop has begun
    env: {PYTHONUNBUFFERED: "1"}
    timeout: 1m                # the longest that one message may take
    retry: {max_attempts: 3}   # then it is DEAD, and waits for you in the inbox
`},
		{"hello.py", 0o755, `#!/usr/bin/env python3
# Leaving the with block completes the message; an exception fails this attempt, and
# it is tried again. What is printed is the log.
from sovereign import Worker

for message in Worker():
    with message:
        print(f"greeting {message.text}: message {message.id}, attempt {message.attempt}")
        message.complete(f"Hello, {message.text}!\n")
`},
		{"sovereign.py", 0o644, python.SDK},
	}
}

// initialize writes the files into dir, all of them or, where one exists
// already, none.
func initialize(w io.Writer, dir string, files []starter) error {
	for _, f := range files {
		path := filepath.Join(dir, f.name)
		switch _, err := os.Lstat(path); {
		case err == nil:
			return refusal.New(refusal.Failed, path+" exists already", "init overwrites nothing",
				"choose another folder: sovereign init DIR")
		case !errors.Is(err, fs.ErrNotExist):
			return mayNot("look for "+path, err)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		if errors.Is(err, fs.ErrNotExist) { // /proc, and what it has none of
			return usage("make the folder "+dir, "the file system there takes no new ones", "choose another place: sovereign init DIR")
		}
		return mayNot("make the folder "+dir, err)
	}
	for _, f := range files {
		if err := writeNew(filepath.Join(dir, f.name), f.text, f.mode); err != nil {
			return err
		}
		fmt.Fprintf(w, "wrote %s\n", filepath.Join(dir, f.name))
	}
	fmt.Fprint(w, "\nnext:\n")
	if dir != "." {
		fmt.Fprintf(w, "  cd %s\n", shellQuote(dir))
	}
	_, err := fmt.Fprint(w, "  sovereign run actors.yaml             # here\n"+
		"  sovereign send hello world --wait     # in another terminal\n"+
		"  sovereign status\n")
	return err
}

// writeNew writes a file that must not exist yet.
func writeNew(path, text string, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return mayNot("write "+path, err)
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
