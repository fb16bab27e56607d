package interrupt

import (
	"os"
	"os/signal"
	"syscall"
)

// Handoff is the variable that tells a program that it is to take over, and from which descriptor.
const Handoff = "SOVEREIGN_HANDOFF"

// Caught are signals as they come. Both have room, and what comes beyond it says nothing
// new.
type Caught struct {
	Stops  chan os.Signal // SIGINT, SIGTERM, and SIGHUP unless it was ignored
	Broken chan os.Signal // SIGPIPE
}

// Early are those since this program was put in another one's place; nil = it was not.
var Early *Caught

func init() {
	if os.Getenv(Handoff) != "" {
		Early = Catch()
	}
}

// Catch catches the signals from now on.
func Catch() *Caught {
	c := &Caught{Stops: make(chan os.Signal, 8), Broken: make(chan os.Signal, 1)}
	stops := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		stops = append(stops, syscall.SIGHUP)
	}
	signal.Notify(c.Stops, stops...)
	signal.Notify(c.Broken, syscall.SIGPIPE)
	return c
}
