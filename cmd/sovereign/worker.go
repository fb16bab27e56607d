package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/server"
)

// workerOptions are what every worker verb needs: who asks.
type workerOptions struct {
	*shared
	process string
	lease   token
}

func (o *workerOptions) addFlags(f *pflag.FlagSet) {
	f.Var((*filled)(&o.process), "process", "process `identity` (default: SOVEREIGN_PROCESS; a flag can be seen by others of this machine)")
	f.Var(&o.lease, "lease-token", "token of the slot's lease (default: SOVEREIGN_LEASE_TOKEN)")
}

// asker is who asks, and where: the flags, else the environment.
func (o *workerOptions) asker() (place, error) {
	at := locate(o.data, os.Getenv)
	if o.process != "" {
		at.inherited.Process = o.process
	}
	if o.lease != 0 {
		at.inherited.LeaseToken = protocol.Token(o.lease)
	}
	if at.inherited.Process == "" {
		return at, usage("this is no worker's process", "SOVEREIGN_PROCESS is not set, or names a process of another store",
			"run it within a worker, or give --process and --lease-token")
	}
	return at, nil
}

// claimOptions are workerOptions and the claim that is meant.
type claimOptions struct {
	workerOptions
	id    string
	token token
}

func (o *claimOptions) addFlags(f *pflag.FlagSet) {
	o.workerOptions.addFlags(f)
	f.Var((*filled)(&o.id), "id", "the message's `ID` (default: SOVEREIGN_MESSAGE_ID)")
	f.Var(&o.token, "token", "the claim's token (default: SOVEREIGN_CLAIM_TOKEN)")
}

// ref is who asks and the claim that is meant: the flags, else the environment. A
// token that is missing is sent as 0, which the supervisor refuses in its turn.
func (o *claimOptions) ref() (place, protocol.ClaimRef, error) {
	at, err := o.asker()
	if err != nil {
		return at, protocol.ClaimRef{}, err
	}
	ref := protocol.ClaimRef{Identity: at.inherited, ID: o.id, Token: protocol.Token(o.token)}
	if ref.ID == "" {
		ref.ID = os.Getenv("SOVEREIGN_MESSAGE_ID")
	}
	if ref.ID == "" {
		return at, ref, usage("no message was named", "there is no --id, and SOVEREIGN_MESSAGE_ID is not set", "give --id and --token")
	}
	if ref.Token == 0 && os.Getenv("SOVEREIGN_CLAIM_TOKEN") != "" {
		ref.Token, err = parseToken("SOVEREIGN_CLAIM_TOKEN", os.Getenv("SOVEREIGN_CLAIM_TOKEN"))
	}
	return at, ref, err
}

// parseToken reads a token from the variable name of the environment.
func parseToken(name, text string) (protocol.Token, error) {
	var t token
	if text == "" {
		return 0, nil
	}
	if err := t.Set(text); err != nil {
		return 0, usage("read "+name, fmt.Sprintf("%q %v", cutTo(printable(text), 40), err), "use the value that the claim had")
	}
	return protocol.Token(t), nil
}

// askWorker makes one request on worker.sock. Without a supervisor there it is
// refused, actor_lease_lost: whoever carries an identity takes no other way.
func askWorker(ctx context.Context, at place, method string, params, result any) error {
	conn, err := server.DialSocket(at.worker)
	if refusal.Has(err, refusal.Unavailable) {
		return orphaned(err)
	}
	if err != nil {
		return err
	}
	c := newClient(conn)
	return errors.Join(c.call(ctx, method, params, result), c.Close())
}

// became prints what a settle made of the message.
func (o *claimOptions) became(io streams, id string, state protocol.MessageState, answer any) error {
	if o.json {
		return writeJSON(io.out, answer)
	}
	_, err := fmt.Fprintf(io.out, "%s is %s\n", id, state)
	return err
}
