package main

import (
	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/mailbox"
)

// policies are the actors of a file as the mailbox records them.
func policies(actors []config.Actor) []mailbox.Actor {
	out := make([]mailbox.Actor, len(actors))
	for i := range actors {
		out[i] = policy(&actors[i])
	}
	return out
}

func policy(a *config.Actor) mailbox.Actor {
	return mailbox.Actor{
		Name:     a.Name,
		Mailbox:  a.Mode != config.Daemon,
		ClaimTTL: a.Claim.TTL,
		Timeout:  a.Timeout,
		Progress: a.ProgressTimeout,
		// A task's claim is kept by its supervisor while its child lives.
		Auto: a.Mode == config.Task || a.Claim.Renew == config.Auto,
		Retry: mailbox.Retry{MaxAttempts: a.Retry.MaxAttempts, Initial: a.Retry.Initial, Max: a.Retry.Max,
			Factor: a.Retry.Factor, Jitter: a.Retry.Jitter},
		Park:      a.OnWorkerLost == config.ParkMessage,
		Limit:     a.Inbox.Limit,
		MaxBody:   a.Inbox.MaxBody,
		Reclaim:   string(a.Reclaim),
		Retention: mailbox.Retention(a.Retention),
	}
}
