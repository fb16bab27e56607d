//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "kills: needs Linux: elsewhere the leftovers of a killed supervisor are not ended")
	os.Exit(1)
}
