package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/refusal"
)

type systemdOptions struct {
	*shared
	install bool
	name    string
}

func newSystemd(s *shared) *cobra.Command {
	o := systemdOptions{shared: s}
	cmd := &cobra.Command{
		Use:   "systemd [actors.yaml]",
		Short: "Print, or write, a systemd unit for this installation",
		Long: `Print a unit that runs this program with this actors.yaml (default: the one in the
current folder), with timeouts that fit its actors. With --install it is written:
to /etc/systemd/system for root, to the user's own units otherwise. A unit that
exists with other text is not overwritten.`,
		Example: `  sovereign systemd actors.yaml
  sudo sovereign systemd --install && sudo systemctl daemon-reload
  sudo systemctl enable --now sovereign`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(streamsOf(cmd), argOr(args, "actors.yaml"))
		},
	}
	cmd.Flags().BoolVar(&o.install, "install", false, "write the unit instead of printing it")
	cmd.Flags().StringVar(&o.name, "name", "sovereign", "the unit's `name`")
	return cmd
}

func (o systemdOptions) run(io streams, path string) error {
	if strings.ContainsAny(o.name, "/ \n") || o.name == "" {
		return usage("--name is no name for a unit", "it must have no blanks and no slashes", "")
	}
	file, err := config.Load(path)
	if err != nil {
		return err
	}
	program, err := thisProgram()
	if err != nil {
		return err
	}
	root := os.Geteuid() == 0
	text := unit(program, file, o.data, root || !o.install, runsAs(root || o.install))
	if !o.install {
		_, err = fmt.Fprint(io.out, text)
		return err
	}
	return o.write(io, text, root)
}

// thisProgram is the path by which this program can be started again: the name
// that it was started by, where that is a link to it, so that an upgrade behind
// the link is followed.
func thisProgram() (string, error) {
	real, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	found, err := exec.LookPath(os.Args[0])
	if err != nil {
		return real, nil
	}
	found, err = filepath.Abs(found)
	if err != nil {
		return real, nil
	}
	a, errA := os.Stat(found)
	b, errB := os.Stat(real)
	if errA == nil && errB == nil && os.SameFile(a, b) {
		return found, nil
	}
	return real, nil
}

// runsAs is the User= of the unit: nobody in particular for root and for a unit
// of the user's own.
func runsAs(own bool) string {
	if own {
		return ""
	}
	me, err := user.Current()
	if err != nil {
		return ""
	}
	return me.Username
}

// unit is the text of the unit. system says that it is for the system's own
// manager.
func unit(program string, file *config.File, data string, system bool, asUser string) string {
	command := unitQuote(program) + " run" // no variables in its first word
	if data != "" {
		abs, err := filepath.Abs(data)
		if err == nil {
			data = abs
		}
		command += " --data " + unitWord(data)
	}
	command += " " + unitWord(file.Path)
	target := "multi-user.target"
	if !system {
		target = "default.target"
	}
	var b strings.Builder
	fmt.Fprintf(&b, `[Unit]
Description=Sovereign, %s
After=network.target
# A supervisor that keeps failing stays down after a while; see journalctl.
StartLimitIntervalSec=60
StartLimitBurst=5

[Service]
# READY is told once every actor has been started.
Type=notify
NotifyAccess=main
ExecStart=%s
WorkingDirectory=%s
`, unitText(file.Path), command, unitText(filepath.Dir(file.Path)))
	if asUser != "" {
		fmt.Fprintf(&b, "User=%s\n", asUser)
	}
	fmt.Fprintf(&b, `# The supervisor alone gets the TERM and stops its workers in order; what is left
# after it is killed.
KillMode=mixed
# Its children live in cgroups of their own below this one.
Delegate=yes
TimeoutStartSec=%d
TimeoutStopSec=%d
Restart=on-failure
RestartSec=1
# 2 is a wrong actors.yaml: starting again does not mend it.
RestartPreventExitStatus=2

[Install]
WantedBy=%s
`, seconds(startTime(file.Actors)), seconds(stopTime(file.Actors)), target)
	return b.String()
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

func (o systemdOptions) write(io streams, text string, root bool) error {
	folder, reload := "/etc/systemd/system", "systemctl daemon-reload && systemctl enable --now "+o.name
	if !root {
		config, err := os.UserConfigDir()
		if err != nil {
			return fmt.Errorf("find the folder of user units: %w", err)
		}
		folder, reload = filepath.Join(config, "systemd", "user"), "systemctl --user daemon-reload && systemctl --user enable --now "+o.name
	}
	path := filepath.Join(folder, o.name+".service")
	if old, err := os.ReadFile(path); err == nil && string(old) != text {
		return refusal.New(refusal.Failed, path+" exists already, with other text", "a unit is not overwritten",
			"compare it with `sovereign systemd`, or choose another --name")
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("make the folder of units: %w", err)
	}
	if err := os.WriteFile(path, []byte(text), fs.FileMode(0o644)); err != nil {
		return fmt.Errorf("write the unit: %w", err)
	}
	_, err := fmt.Fprintf(io.out, "wrote %s\n\nnext:\n  %s\n", path, reload)
	return err
}
