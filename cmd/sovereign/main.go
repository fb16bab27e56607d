package main

import (
	"context"
	"os"
)

func main() {
	if t := takeoverGiven(); t != nil {
		t.main()
	}
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
