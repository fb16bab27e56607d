//go:build !linux

package main

import "time"

// monotonic is 0: no service manager of this system asks for it.
func monotonic() time.Duration { return 0 }
