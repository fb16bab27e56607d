package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// tellClockSet calls set each time that somebody sets the wall clock, until ctx
// ends. The kernel says so through a timer on that clock which is cancelled by
// such a step (timerfd_create(2), TFD_TIMER_CANCEL_ON_SET); nothing is polled.
func tellClockSet(ctx context.Context, set func()) error {
	fd, err := unix.TimerfdCreate(unix.CLOCK_REALTIME, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("watch the wall clock: %w", err)
	}
	timer := os.NewFile(uintptr(fd), "wall clock")
	defer timer.Close()
	defer context.AfterFunc(ctx, func() { _ = timer.Close() })()
	raw, err := timer.SyscallConn()
	if err != nil {
		return fmt.Errorf("watch the wall clock: %w", err)
	}
	never := unix.ItimerSpec{Value: unix.Timespec{Sec: 1 << 40}}
	for b := make([]byte, 8); ; {
		var armed error
		err := raw.Control(func(fd uintptr) {
			armed = unix.TimerfdSettime(int(fd), unix.TFD_TIMER_ABSTIME|unix.TFD_TIMER_CANCEL_ON_SET, &never, nil)
		})
		if err == nil {
			err = armed
		}
		if err == nil {
			_, err = timer.Read(b)
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, unix.ECANCELED):
			set()
		case err != nil:
			return fmt.Errorf("watch the wall clock: %w", err)
		}
	}
}
