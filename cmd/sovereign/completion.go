package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newCompletion() *cobra.Command {
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print a completion script for bash, zsh, fish or powershell",
		Long: `Print a completion script for bash, zsh, fish or powershell. Besides commands and
flags it completes actor names and message ids, where a supervisor runs, and the
names of signals. The one for bash needs the package bash-completion; zsh needs
compinit.`,
		Example: `  source <(sovereign completion bash)
  sovereign completion zsh > "${fpath[1]}/_sovereign"
  sovereign completion fish > ~/.config/fish/completions/sovereign.fish`,
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		Args:      cobra.ExactArgs(1),
		RunE:      func(cmd *cobra.Command, args []string) error { return printCompletion(cmd, args[0]) },
	}
}

func printCompletion(cmd *cobra.Command, shell string) error {
	out := cmd.OutOrStdout()
	switch shell {
	case "bash":
		return cmd.Root().GenBashCompletionV2(out, true)
	case "zsh":
		return cmd.Root().GenZshCompletion(out)
	case "fish":
		return cmd.Root().GenFishCompletion(out, true)
	case "powershell":
		return cmd.Root().GenPowerShellCompletionWithDesc(out)
	default:
		return usage(fmt.Sprintf("there is no completion for %q", cutTo(printable(shell), 40)),
			"the shells are bash, zsh, fish and powershell", "sovereign completion bash")
	}
}
