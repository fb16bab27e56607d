package main

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed child/child.c
var childSource string

// child makes the program that parts idle and supervisors keep running, in dir: it writes
// its number to the FIFO "up" there, with " worker" behind it where its argument says so,
// and waits, as a worker in a claim. It is small, so that what is measured is the
// supervisor; without a C compiler it is a script, and takes several times as long to
// start.
func child(dir string) (path string, err error) {
	path, up := filepath.Join(dir, "child"), filepath.Join(dir, "up")
	if cc, err := exec.LookPath("cc"); err == nil {
		cmd := exec.Command(cc, "-O2", "-DUP="+fmt.Sprintf("%q", up), "-x", "c", "-", "-o", path)
		cmd.Stdin = strings.NewReader(childSource)
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("cc: %w\n%s", err, out)
		}
		return path, nil
	}
	fmt.Print("cc is not installed: the child is a shell script, whose start takes longer\n\n")
	never := filepath.Join(dir, "up.never")
	script := fmt.Sprintf(`#!/bin/sh
echo $$ $1 >%s
[ "$1" ] && echo '{"jsonrpc":"2.0","id":1,"method":"claim","params":{"wait":"24h"}}' >&3
mkfifo -m 600 %[2]s 2>/dev/null
read end <%[2]s
`, up, never)
	return path, os.WriteFile(path, []byte(script), 0o700)
}
