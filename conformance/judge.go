package conformance

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/sovereign-run/sovereign/protocol"
)

// A Rule is one property that can be seen from outside.
type Rule struct {
	Property string // its number in docs/contract.md
	Name     string // short and stable, for programs
	What     string // for people
	try      func(*trial)
}

// Rules are all that is checked, in their order.
func Rules() []Rule {
	var all []Rule
	for _, some := range [][]Rule{formRules, claimRules, settleRules, awaitRules, fenceRules} {
		all = append(all, some...)
	}
	return all
}

// A Finding is how one rule was kept.
type Finding struct {
	Property string `json:"property"`
	Name     string `json:"name"`
	What     string `json:"what"`
	OK       bool   `json:"ok"`
	Detail   string `json:"detail,omitempty"` // what was found instead
}

// patience is how long the check of one rule may take. It takes an instant, where
// nothing has to expire.
const patience = 30 * time.Second

// Judge checks the rules one after another against sys, and calls found for
// each. It returns an error where it could not come to the end: no worker came,
// or ctx ended.
func Judge(ctx context.Context, sys System, rules []Rule, found func(Finding)) error {
	j := &judge{sys: sys, hosts: map[string]map[string]*Worker{}}
	defer j.close()
	if err := j.open(ctx); err != nil {
		return err
	}
	for _, r := range rules {
		detail := j.try(ctx, r)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		found(Finding{Property: r.Property, Name: r.Name, What: r.What, OK: detail == nil, Detail: text(detail)})
	}
	return nil
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A judge keeps what the rules share: one connection to each socket, and who
// hosts which slot.
type judge struct {
	sys      System
	socket   *wire
	operator *wire
	hosts    map[string]map[string]*Worker // by actor and slot
}

func (j *judge) open(ctx context.Context) (err error) {
	// Once a worker is there, the sockets are.
	if err := j.workers(ctx); err != nil {
		return err
	}
	if j.socket, err = j.dial(ctx, j.sys.Dial); err != nil {
		return fmt.Errorf("connect to the socket of workers: %w", err)
	}
	if j.operator, err = j.dial(ctx, j.sys.Operator); err != nil {
		return fmt.Errorf("connect to the socket of people: %w", err)
	}
	return nil
}

// workers waits until every slot is hosted.
func (j *judge) workers(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errors.New("not every slot has a worker"))
	defer cancel()
	for actor, n := range Slots {
		for slot := 1; slot <= n; slot++ {
			if _, err := j.host(ctx, actor, fmt.Sprint(slot), nil); err != nil {
				return err
			}
		}
	}
	return nil
}

func (j *judge) dial(ctx context.Context, to func(context.Context) (net.Conn, error)) (*wire, error) {
	conn, err := to(ctx)
	if err != nil {
		return nil, err
	}
	return newWire(conn, protocol.NewDecoder(conn)), nil
}

func (j *judge) close() {
	for _, w := range []*wire{j.socket, j.operator} {
		if w != nil {
			_ = w.conn.Close()
		}
	}
	for _, slots := range j.hosts {
		for _, w := range slots {
			_ = w.channel.conn.Close()
		}
	}
}

// host waits until somebody hosts the slot who is not before.
func (j *judge) host(ctx context.Context, actor, slot string, before *Worker) (*Worker, error) {
	for {
		if w := j.hosts[actor][slot]; w != nil && w != before {
			return w, nil
		}
		select {
		case w, ok := <-j.sys.Workers:
			if !ok {
				return nil, errors.New("no more workers come")
			}
			if j.hosts[w.Actor] == nil {
				j.hosts[w.Actor] = map[string]*Worker{}
			}
			j.hosts[w.Actor][w.Slot] = w
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for a worker of %s/%s: %w", actor, slot, context.Cause(ctx))
		}
	}
}

// try checks one rule, and puts the mailbox in order behind it.
func (j *judge) try(ctx context.Context, r Rule) error {
	limited, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("it took longer than %s", patience))
	defer cancel()
	t := &trial{ctx: limited, judge: j}
	r.try(t)
	t.tidy(ctx)
	return t.err
}
