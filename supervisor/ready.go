package supervisor

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/supervisor/process"
)

// The wait between two probes of a process that starts.
const (
	probeFirst = 20 * time.Millisecond
	probeMost  = time.Second
	probeLimit = 5 * time.Second // of one probe
)

// probe returns nil once the process of, a process of d, is seen to be ready, or ctx's error.
func (sup *Supervisor) probe(ctx context.Context, d *definition, of fence.Holder) error {
	for wait := probeFirst; ; wait = min(wait*3/2, probeMost) {
		err := sup.probeOnce(ctx, d, of)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		sup.log.Debug("not ready yet", "actor", of.Slot.Actor, "slot", of.Slot.Number, "err", err)
		if !pause(ctx, wait) {
			return context.Cause(ctx)
		}
	}
}

func (sup *Supervisor) probeOnce(ctx context.Context, d *definition, of fence.Holder) error {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	switch r := d.spec.Ready; {
	case len(r.Exec) > 0:
		return sup.probeExec(ctx, d, of)
	case r.TCP != "":
		return probeTCP(ctx, r.TCP)
	case r.HTTP != "":
		return probeHTTP(ctx, r.HTTP)
	}
	return errors.New("nothing to probe")
}

// probeTCP is nil where somebody accepts connections at address.
func probeTCP(ctx context.Context, address string) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}

// probeHTTP is nil where a GET of url is answered with a status from 200 to 399.
func probeHTTP(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	client := http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true}, // no proxy, no connection left open
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 399 {
		return fmt.Errorf("%s answers %s", url, resp.Status)
	}
	return nil
}

// probeExec is nil where the actor's probe exits with 0. It runs as the actor's
// user, in its folder and environment, without an identity; nothing of it is
// left. By its mark the next supervisor finds what this one, when it is killed, leaves
// of it.
func (sup *Supervisor) probeExec(ctx context.Context, d *definition, of fence.Holder) error {
	spec, slot, mark := d.spec, of.Slot, probeMark(of.Process)
	who, err := d.account()
	if err != nil {
		return err
	}
	p, err := sup.host.Start(ctx, process.Spec{Argv: spec.Ready.Exec, Dir: spec.Cwd, Umask: spec.Umask, NoFile: spec.Limits.NoFile,
		Credential: who.credential, Cgroup: fmt.Sprintf("%s.%d.ready", slot.Actor, slot.Number), Mark: mark,
		Env: overlay(who.env, "SOVEREIGN_ACTOR="+slot.Actor, fmt.Sprintf("SOVEREIGN_SLOT=%d", slot.Number), process.ProbeVariable+"="+mark)})
	if err != nil {
		return err
	}
	select {
	case <-p.Exited():
	case <-ctx.Done():
	}
	if err := p.KillTree(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	if x := p.Exit(); !x.Success() {
		return fmt.Errorf("the probe ended: %s", x)
	}
	return nil
}

// probeMark is the mark of the probes of p. It follows from p, which is on record, and
// not the other way round: it is no capability.
func probeMark(p fence.Process) string {
	sum := sha256.Sum256([]byte("probe of " + string(p)))
	return "probe_" + hex.EncodeToString(sum[:16])
}
