// Package systemd holds the proof that the unit of `sovereign systemd` does what it
// says, against a real systemd: one that is booted, for the test, in a container of
// systemd-nspawn whose root is the machine's own with a throw-away layer above it.
//
// It needs root, systemd-nspawn (Debian: systemd-container) and cgroup v2, and says
// what is missing where it is skipped. With SOVEREIGN_SYSTEMD=1 what is
// missing is a failure; with -short it is left out.
//
// What runs inside has not the host root's power over the kernel: commands are run
// without the capabilities to set the clock, to reboot or to load modules. The
// container has no network but its loopback, and only its own init is ever told to
// stop.
package systemd
