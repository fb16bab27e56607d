package main

import (
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/server"
)

// completeActor offers the names of actors, from a running supervisor only: the
// Tab key opens no store.
func completeActor(s *shared) cobra.CompletionFunc {
	return completeActorThat(s, func(protocol.ActorStatus) bool { return true })
}

// completeRecipient is completeActor without the daemons, which get no messages.
func completeRecipient(s *shared) cobra.CompletionFunc {
	return completeActorThat(s, func(a protocol.ActorStatus) bool { return a.Mode != string(config.Daemon) })
}

func completeActorThat(s *shared, fits func(protocol.ActorStatus) bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var status protocol.Status
		if len(args) > 0 || !s.glance(cmd.Context(), protocol.MethodStatus, protocol.StatusParams{}, &status) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []cobra.Completion
		for _, a := range status.Actors {
			if fits(a) {
				names = append(names, cobra.CompletionWithDesc(a.Actor, a.Mode+", "+string(a.State)))
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeActors is completeActor for a command that takes several.
func completeActors(s *shared) cobra.CompletionFunc {
	one := completeActor(s)
	return func(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		names, directive := one(cmd, nil, word)
		return slices.DeleteFunc(names, func(c cobra.Completion) bool {
			name, _, _ := strings.Cut(c, "\t")
			return slices.Contains(args, name)
		}), directive
	}
}

// completeSignal offers actors, then the signals that a person would send.
func completeSignal(s *shared) cobra.CompletionFunc {
	actor := completeActor(s)
	return func(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) != 1 {
			return actor(cmd, args, word)
		}
		return []cobra.Completion{"HUP", "INT", "QUIT", "TERM", "KILL", "USR1", "USR2", "STOP", "CONT", "WINCH", "ABRT", "ALRM"},
			cobra.ShellCompDirectiveNoFileComp
	}
}

// completeMessage offers the ids of the messages that a person would name.
func completeMessage(s *shared) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var page protocol.Inbox
		if !s.glance(cmd.Context(), protocol.MethodInboxList, protocol.InboxListParams{Limit: 200}, &page) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var ids []cobra.Completion
		for _, m := range page.Messages {
			ids = append(ids, cobra.CompletionWithDesc(m.ID, strings.TrimSpace(m.To+" "+string(m.State)+" "+printable(m.Subject))))
		}
		return ids, cobra.ShellCompDirectiveNoFileComp
	}
}

// glance asks a running supervisor and gives up soon.
func (s *shared) glance(ctx context.Context, method string, params, result any) bool {
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	conn, err := server.Dial(locate(s.data, os.Getenv).data)
	if err != nil {
		return false
	}
	defer conn.Close()
	return newClient(conn).call(ctx, method, params, result) == nil
}

// completeState offers the states of messages.
func completeState(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var names []cobra.Completion
	for _, s := range protocol.MessageStates {
		names = append(names, string(s))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
