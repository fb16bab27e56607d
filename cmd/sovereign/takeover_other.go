//go:build !linux

package main

import (
	"errors"
	"os"
)

// canTakeOver says whether a program can take another one's place here and keep its
// children.
const canTakeOver = false

var errOnlyLinux = errors.New("only on Linux")

func memoryFile(string) (*os.File, error) { return nil, errOnlyLinux }

func duplicate(uintptr, string) (*os.File, error) { return nil, errOnlyLinux }
