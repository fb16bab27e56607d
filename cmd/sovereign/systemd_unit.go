package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sovereign-run/sovereign/config"
)

// A service is what a unit is made for.
type service struct {
	program string // path of this program
	file    *config.File
	data    string // folder of the store where it is not the file that says it
	own     bool   // of a user's own manager, not the system's
	user    string // User=; "" = root, or who owns the manager
}

// unit is the text of the unit, for systemd 252 and later. Its type is notify, not
// notify-reload: the latter cannot say that a reload was refused, and before 253 it
// is ignored with a warning and the service counts as started at once.
func (s service) unit() string {
	var b strings.Builder
	// There are no variables in the first word.
	run := unitQuote(s.program) + " run "
	if s.data != "" {
		run += "--data " + unitWord(s.data) + " "
	}
	run += unitWord(s.file.Path)
	reload := unitQuote(s.program) + " reload --data " + unitWord(s.file.Data)
	after, target := "After=network.target\n", "multi-user.target"
	if s.own {
		after, target = "", "default.target"
	}
	fmt.Fprintf(&b, `[Unit]
Description=Sovereign, %s
%s# A supervisor that keeps failing stays down after a while: see journalctl, then
# systemctl reset-failed.
StartLimitIntervalSec=60
StartLimitBurst=5

[Service]
# READY is told once every actor has been up, or has shown that it cannot.
Type=notify
NotifyAccess=main
ExecStart=%s
# It returns once all is applied, and fails where the file is refused.
ExecReload=%s
WorkingDirectory=%s
`, unitText(s.file.Path), after, run, reload, unitText(filepath.Dir(s.file.Path)))
	if s.user != "" {
		fmt.Fprintf(&b, "User=%s\n", s.user)
	}
	fmt.Fprintf(&b, `# The supervisor alone gets the TERM and stops its actors in order; what is left
# after it is killed.
KillMode=mixed
# Its children live in cgroups of their own below this one. The kernel's OOM killer
# ends one of them, not the service.
Delegate=yes
OOMPolicy=continue
TasksMax=infinity
# They fit the actors as they were when this unit was made.
TimeoutStartSec=%d
TimeoutStopSec=%d
# A supervisor that hangs is aborted, with the stacks of its goroutines in the
# journal, and started again.
WatchdogSec=60
TimeoutAbortSec=15
Restart=on-failure
RestartSec=1

# What actors get unless they say umask; the store's own files are private anyhow.
UMask=0022
# Hardening that no ordinary program notices. It holds for the actors, too: in a
# drop-in, take back what one needs, such as NoNewPrivileges=no for sudo, or add more.
NoNewPrivileges=yes
LockPersonality=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
`, seconds(startTime(s.file.Actors)), seconds(stopTime(s.file.Actors)))
	if !s.own {
		// In a user's manager each of these would ask for a user namespace.
		b.WriteString(`ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
CapabilityBoundingSet=~CAP_SYS_BOOT CAP_SYS_MODULE CAP_SYS_RAWIO CAP_SYS_TIME CAP_SYSLOG CAP_MAC_ADMIN CAP_MAC_OVERRIDE
ProtectSystem=full
`)
		for _, folder := range s.written() {
			fmt.Fprintf(&b, "ReadWritePaths=%s\n", unitQuote(folder))
		}
	}
	fmt.Fprintf(&b, "\n[Install]\nWantedBy=%s\n", target)
	return b.String()
}

// written are the folders that ProtectSystem=full would take from the supervisor and
// its actors: those of the store and of the actors, where they lie in the system's.
// The store's own may not be there yet.
func (s service) written() []string {
	var out []string
	add := func(folder string) {
		for _, system := range []string{"/usr", "/boot", "/efi", "/etc"} {
			if strings.HasPrefix(folder+"/", system+"/") && !slices.Contains(out, folder) {
				out = append(out, folder)
			}
		}
	}
	add(filepath.Dir(s.file.Data))
	for _, a := range s.file.Actors {
		add(a.Cwd)
	}
	slices.Sort(out)
	return out
}

// unitText writes text so that systemd takes it as it is: % begins a specifier.
func unitText(s string) string { return strings.ReplaceAll(printable(s), "%", "%%") }

// unitWord writes one word of a command line: quoted, and with $ doubled, which
// begins a variable there.
func unitWord(s string) string { return unitQuote(strings.ReplaceAll(s, "$", "$$")) }

func unitQuote(s string) string {
	s = strings.NewReplacer("%", "%%", `\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(s)
	if strings.ContainsAny(s, " \t'\";\\") {
		return `"` + s + `"`
	}
	return s
}

func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

// margin is what starting and stopping take beside what the actors may.
const margin = 30 * time.Second

// startTime bounds how long a start takes: actors wait for those that they come
// after.
func startTime(actors []config.Actor) time.Duration {
	return margin + longest(actors, func(a *config.Actor) time.Duration {
		if a.Ready == nil {
			return 0
		}
		return a.Ready.Timeout
	})
}

// stopTime bounds how long a stop takes: an actor is stopped after those that
// come after it.
func stopTime(actors []config.Actor) time.Duration {
	return margin + longest(actors, func(a *config.Actor) time.Duration { return a.Stop.Timeout })
}

// longest is the longest chain of actors that come after each other. There are
// no circles: config refuses them.
func longest(actors []config.Actor, takes func(*config.Actor) time.Duration) time.Duration {
	byName := map[string]*config.Actor{}
	for i := range actors {
		byName[actors[i].Name] = &actors[i]
	}
	until := map[string]time.Duration{}
	var chain func(a *config.Actor) time.Duration
	chain = func(a *config.Actor) time.Duration {
		if d, known := until[a.Name]; known {
			return d
		}
		var before time.Duration
		for _, name := range a.After {
			if earlier, ok := byName[name]; ok {
				before = max(before, chain(earlier))
			}
		}
		until[a.Name] = before + takes(a)
		return until[a.Name]
	}
	var most time.Duration
	for i := range actors {
		most = max(most, chain(&actors[i]))
	}
	return most
}
