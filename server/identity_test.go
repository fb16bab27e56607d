package server_test

import (
	"fmt"
	"testing"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/protocol"
)

// A request that says twice who asks, and not the same, is refused, whichever of the two
// is right: beside the params and in them, in an item of a settle, in the claim of a
// send. Prefer one of the two and this fails.
func TestIdentity_RefusesContradiction(t *testing.T) {
	h := newHouse(t)
	one, two := h.birth("resize", 1, config.Worker), h.birth("resize", 2, config.Worker)
	s := h.shell()
	ask := func(params, beside string) line {
		s.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"ping","params":{%s},%s}`, params, beside))
		return s.read()
	}
	first := fmt.Sprintf(`"process":%q,"lease_token":%d`, string(one.Process), one.Token)
	second := fmt.Sprintf(`"process":%q,"lease_token":%d`, string(two.Process), two.Token)
	want(t, ask(first, first), "")
	want(t, ask(fmt.Sprintf(`"process":%q`, string(one.Process)), fmt.Sprintf(`"lease_token":%d`, one.Token)), "")
	for _, two := range [][2]string{
		{first, second}, {second, first},
		{first, fmt.Sprintf(`"lease_token":%d`, two.Token)},
		{first, fmt.Sprintf(`"process":%q`, string(two.Process))},
	} {
		want(t, ask(two[0], two[1]), "bad_request")
	}

	// Within a request: each item of a settle is judged alone.
	p, _ := h.channel(one)
	h.send("resize", "b")
	d := p.claimOne()
	claim := fmt.Sprintf(`"id":%q,"token":%d`, d.ID, d.Token)
	want(t, p.ask("send", `{"to":"other","claim":{`+claim+`,`+second+`}}`), "bad_request")
	for _, verb := range []string{"complete", "fail", "release"} {
		got := into[protocol.SettleResult](t, p.ask("settle", `{"items":[{"`+verb+`":{`+claim+`,`+second+`}}]}`))
		if err := got.Results[0].Error; err == nil || err.Data.Category != "bad_request" {
			t.Errorf("%s: %+v", verb, got.Results[0])
		}
	}
	got := into[protocol.SettleResult](t, p.ask("settle", `{"items":[{"complete":{`+claim+`,`+first+`}}]}`))
	if got.Results[0].State != "DONE" {
		t.Errorf("%+v", got.Results[0])
	}
}
