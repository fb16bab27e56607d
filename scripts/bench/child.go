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

// child makes the program that parts idle, supervisors, redelivery and backlog keep running,
// in dir: it writes its number to the FIFO "up" there, and waits. With "worker" as argument
// it writes that as well, and waits in a claim; with "claims" it claims first, and writes
// its number once it has a message. It is small, so that what is measured is the
// supervisor; without a C compiler it is a script, and takes longer to start.
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
claim='{"jsonrpc":"2.0","id":1,"method":"claim","params":{"wait":"24h"}}'
case "$1" in
claims) echo "$claim" >&3; read answer <&3; echo $$ >%[1]s ;;
worker) echo $$ worker >%[1]s; echo "$claim" >&3 ;;
*) echo $$ >%[1]s ;;
esac
mkfifo -m 600 %[2]s 2>/dev/null
read end <%[2]s
`, up, never)
	return path, os.WriteFile(path, []byte(script), 0o700)
}
