package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/refusal"
)

type systemdOptions struct {
	*shared
	install, user, force bool
	name                 string
}

func newSystemd(s *shared) *cobra.Command {
	o := systemdOptions{shared: s}
	cmd := &cobra.Command{
		Use:   "systemd [actors.yaml]",
		Short: "Print, or write, a systemd unit for this installation",
		Long: `Print a unit that runs this program with this actors.yaml (default: the one in the
current folder), with timeouts that fit its actors. With --install it is written:
to /etc/systemd/system for root, to the user's own units otherwise or with --user.
systemd is not told: the command for that is printed. A unit that exists with other
text is overwritten only with --force; keep changes in a drop-in (systemctl edit).

After a change of the actors' timeouts make it anew; until then the supervisor
itself asks systemd for the time that a start or a stop needs.`,
		Example: `  sovereign systemd actors.yaml
  sudo sovereign systemd --install && sudo systemctl daemon-reload
  sudo systemctl enable --now sovereign
  sovereign systemd --install --user`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(streamsOf(cmd), argOr(args, "actors.yaml"))
		},
	}
	cmd.Flags().BoolVar(&o.install, "install", false, "write the unit instead of printing it")
	cmd.Flags().BoolVar(&o.user, "user", false, "a unit of the user's own manager (systemctl --user)")
	cmd.Flags().BoolVar(&o.force, "force", false, "with --install: overwrite a unit that has other text")
	cmd.Flags().StringVar(&o.name, "name", "sovereign", "the unit's `name`")
	return cmd
}

func (o systemdOptions) run(io streams, path string) error {
	if strings.ContainsAny(o.name, "/ \n") || o.name == "" {
		return usage("--name is no name for a unit", "it must have no blanks and no slashes", "")
	}
	if o.force && !o.install {
		return usage("--force overwrites a unit, and none is written", "it goes with --install", "")
	}
	file, err := config.Load(path)
	if err != nil {
		return err
	}
	program, err := thisProgram()
	if err != nil {
		return err
	}
	if o.data != "" {
		if o.data, err = filepath.Abs(o.data); err != nil {
			return fmt.Errorf("find the store: %w", err)
		}
		file.Data = o.data
	}
	root := os.Geteuid() == 0
	s := service{program: program, file: file, data: o.data, own: o.user || o.install && !root}
	if !root && !s.own {
		if s.user, err = thisUser(); err != nil {
			return err
		}
	}
	if !o.install {
		_, err = fmt.Fprint(io.out, s.unit())
		return err
	}
	return o.write(io, s)
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

// thisUser is the name of who prints a unit for the system's manager: the service is
// to run as the same.
func thisUser() (string, error) {
	me, err := user.Current()
	if err != nil {
		return "", fmt.Errorf("find your name: %w", err)
	}
	return me.Username, nil
}

// write writes the unit, whole or not at all.
func (o systemdOptions) write(io streams, s service) error {
	folder, control := "/etc/systemd/system", "systemctl"
	if s.own {
		config, err := os.UserConfigDir()
		if err != nil {
			return fmt.Errorf("find the folder of user units: %w", err)
		}
		folder, control = filepath.Join(config, "systemd", "user"), "systemctl --user"
	}
	path := filepath.Join(folder, o.name+".service")
	if old, err := os.ReadFile(path); err == nil && string(old) != s.unit() && !o.force {
		return refusal.New(refusal.Failed, path+" exists already, with other text", "a unit is not overwritten",
			"compare it with `sovereign systemd`, keep changes in a drop-in (`"+control+" edit "+o.name+"`), then use --force")
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("make the folder of units: %w", err)
	}
	if err := replaceFile(path, s.unit()); err != nil {
		return fmt.Errorf("write the unit: %w", err)
	}
	next := fmt.Sprintf("  %s daemon-reload\n  %s enable --now %s\n", control, control, o.name)
	if s.own {
		next += "  loginctl enable-linger    # so that it runs without anybody logged in\n"
	}
	_, err := fmt.Fprintf(io.out, "wrote %s\n\nnext:\n%s", path, next)
	return err
}

// replaceFile puts a file with text in the place of path.
func replaceFile(path, text string) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // nothing is left to remove after the rename
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
