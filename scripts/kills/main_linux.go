package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == lifeArgument {
		fmt.Fprintln(os.Stderr, "kills:", live(os.Args[2])) // it returns only where it fails
		os.Exit(1)
	}
	n := flag.Int("n", 200, "how many supervisors are killed")
	seed := flag.Uint64("seed", rand.Uint64N(1<<32), "what decides; random unless given")
	binary := flag.String("binary", "", "the program to kill (default: it is built)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	figures, err := kills(ctx, *binary, *seed, *n, 0)
	stop()
	fmt.Println(figures)
	if err != nil {
		fmt.Fprintln(os.Stderr, "kills:", err)
		os.Exit(1)
	}
}
