package conformance

import (
	"sync"
	"time"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

// Who may start work, and under which number.
var claimRules = []Rule{
	{"P2.1", "claim_lease", "a claim needs the slot's current lease", tryClaimLease},
	{"P2.2", "claim_record", "an attempt records process, lease token and claim token", tryClaimRecord},
	{"P2.3", "claim_live", "a message that is being worked on is claimed by nobody else", tryClaimLive},
	{"P3.1", "addressee", "only the addressee claims and settles, whatever the tokens", tryAddressee},
	{"P3.2", "one_winner", "of many that claim one message at once one wins", tryOneWinner},
	{"P3.3", "claim_again", "a claim repeated by its process is the same claim", tryClaimAgain},
	{"P3.3", "request", "a claim request repeated by its process brings the same claims", tryRequest},
	{"P3.4", "claim_fresh", "after expiry the same process gets a fresh, greater token and a new attempt", tryClaimFresh},
	{"P3.8", "never_claimed", "a message that was never claimed has no token", tryNeverClaimed},
	{"P3.9", "expiry", "a claim that is not renewed expires, its worker is told, the attempt is charged", tryExpiry},
	{"P3.9", "expiry_dead", "attempts that expire end DEAD after max_attempts", tryExpiryDead},
	{"P1.10", "late", "a late settle is refused, lease_expired, swept or not", tryLate},
	{"P7", "tokens_grow", "each token is greater than the one before, and below 2^53", tryTokensGrow},
	{"P9", "remaining", "a claim says how long it lasts, and a renewal never shortens it", tryRemaining},
}

func tryClaimLease(t *trial) {
	me, id := t.host(Work, "1"), t.send(Work, "x")
	same := t.unchanged(id)
	for what, as := range map[string]protocol.Identity{
		"another lease token": {Process: me.As.Process, LeaseToken: me.As.LeaseToken + 1},
		"no lease token":      {Process: me.As.Process},
		"another's token":     {Process: me.As.Process, LeaseToken: t.host(Work, "2").As.LeaseToken},
	} {
		t.refused("claim with "+what, t.under(as, protocol.MethodClaim, args{"id": id}), refusal.ActorLeaseLost)
	}
	same("refused claims")
}

func tryClaimRecord(t *trial) {
	me := t.host(Work, "1")
	d := t.claimed(me, Work)
	shown := t.state("a claimed message", d.ID, "CLAIMED")
	c := shown.Claim
	if c == nil {
		t.failf("a claimed message is shown without its claim")
		return
	}
	t.must(c.Token == d.Token && c.LeaseToken == me.As.LeaseToken && shown.Attempt == d.Attempt && d.Attempt == 1,
		"token %d, lease token %d, attempt %d are shown; given were %d, %d, %d", c.Token, c.LeaseToken, shown.Attempt, d.Token, me.As.LeaseToken, d.Attempt)
	t.must(!c.ExpiresAt.IsZero(), "the claim has no expiry on record")
}

func tryClaimLive(t *trial) {
	one, two := t.host(Work, "1"), t.host(Work, "2")
	d := t.claimed(one, Work)
	same := t.unchanged(d.ID)
	t.refused("claim by the other slot", t.as(two, protocol.MethodClaim, args{"id": d.ID}), refusal.MessageNotClaimable)
	t.refused("complete by the other slot", t.as(two, protocol.MethodComplete, args{"id": d.ID, "token": d.Token}), refusal.FencingTokenStale)
	same("what the other slot asked")
}

func tryAddressee(t *trial) {
	other := t.host(Other, "1")
	id := t.send(Work, "x")
	t.refused("claim of another's message", t.as(other, protocol.MethodClaim, args{"id": id}), refusal.NotAddressee)
	d := t.claim(t.host(Work, "1"), id)
	same := t.unchanged(id)
	for _, method := range []string{protocol.MethodComplete, protocol.MethodFail, protocol.MethodRelease, protocol.MethodRenew, protocol.MethodCheck} {
		t.refused(method+" with the right token", t.as(other, method, args{"id": id, "token": d.Token}), refusal.NotAddressee)
	}
	same("what another actor asked")
}

func tryOneWinner(t *trial) {
	one, two := t.host(Work, "1"), t.host(Work, "2")
	for range 8 {
		id := t.send(Work, "x")
		if t.err != nil {
			return
		}
		const each = 4
		answers := make([]answer, 2*each)
		var all sync.WaitGroup
		for i := range answers {
			w := []*Worker{one, two}[i%2]
			all.Go(func() {
				to, err := t.socket.begin(protocol.MethodClaim, args{"process": w.As.Process, "lease_token": w.As.LeaseToken, "id": id})
				if err == nil {
					answers[i], _ = t.socket.wait(t.ctx, to)
				}
			})
		}
		all.Wait()
		winners, tokens := map[*Worker]bool{}, map[protocol.Token]bool{}
		for i, a := range answers {
			w := []*Worker{one, two}[i%2]
			if a.err != nil {
				t.refused("a claim that lost", a, refusal.MessageNotClaimable)
				continue
			}
			d := t.one("a claim that won", w, a)
			winners[w], tokens[d.Token] = true, true
		}
		t.must(len(winners) == 1 && len(tokens) == 1, "%d processes won, under %d tokens", len(winners), len(tokens))
	}
}

func tryClaimAgain(t *trial) {
	me := t.host(Work, "1")
	d := t.claimed(me, Work)
	again := t.claim(me, d.ID)
	t.must(again.Token == d.Token && again.Attempt == d.Attempt, "token %d and attempt %d became %d and %d", d.Token, d.Attempt, again.Token, again.Attempt)
	var others protocol.ClaimResult
	t.granted("claim without id", t.as(me, protocol.MethodClaim, args{"max": 10}), &others)
	t.noteClaims(me, others.Messages)
	for _, o := range others.Messages {
		t.must(o.ID != d.ID, "a claim without id brought a message that its process holds already")
	}
}

func tryRequest(t *trial) {
	one, two := t.host(Work, "1"), t.host(Work, "2")
	t.send(Work, "x")
	name := "request-" + time.Now().Format(time.RFC3339Nano)
	first := t.one("claim under a request", one, t.as(one, protocol.MethodClaim, args{"request": name}))
	again := t.one("the same again", one, t.as(one, protocol.MethodClaim, args{"request": name}))
	t.must(again.ID == first.ID && again.Token == first.Token && again.Attempt == first.Attempt,
		"%s under %d became %s under %d", first.ID, first.Token, again.ID, again.Token)
	var others protocol.ClaimResult
	t.granted("the same by another process", t.as(two, protocol.MethodClaim, args{"request": name}), &others)
	t.noteClaims(two, others.Messages)
	for _, o := range others.Messages {
		t.must(o.ID != first.ID, "another process got the claims of a request")
	}
}

func tryClaimFresh(t *trial) {
	me := t.host(Brief, "1")
	first := t.claimed(me, Brief)
	t.expire(me, first)
	second := t.claim(me, first.ID)
	t.must(second.Token > first.Token && second.Attempt == first.Attempt+1,
		"token %d, attempt %d after token %d, attempt %d", second.Token, second.Attempt, first.Token, first.Attempt)
	t.refused("complete with the first token", t.as(me, protocol.MethodComplete, args{"id": first.ID, "token": first.Token}), refusal.FencingTokenStale, refusal.LeaseExpired)
}

func tryNeverClaimed(t *trial) {
	me, id := t.host(Work, "1"), t.send(Work, "x")
	same := t.unchanged(id)
	for _, method := range []string{protocol.MethodComplete, protocol.MethodFail, protocol.MethodRelease, protocol.MethodRenew, protocol.MethodCheck} {
		t.refused(method+" with token 0", t.as(me, method, args{"id": id, "token": 0}), refusal.FencingTokenStale)
		t.refused(method+" with a token", t.as(me, method, args{"id": id, "token": 1}), refusal.FencingTokenStale)
	}
	same("refused settles")
}

func tryExpiry(t *trial) {
	me := t.host(Brief, "1")
	d := t.claimed(me, Brief)
	t.expire(me, d)
	shown := t.state("an expired claim", d.ID, "NEW")
	t.must(shown.Attempts == 1 && shown.Claim == nil && len(shown.Receipts) == 1 && shown.Receipts[0].Category == "claim_expired" && shown.Receipts[0].Counted,
		"attempts %d, receipts %+v", shown.Attempts, shown.Receipts)
}

func tryExpiryDead(t *trial) {
	me, id := t.host(Brief, "1"), t.send(Brief, "x")
	for range Attempts {
		t.expire(me, t.claim(me, id))
	}
	shown := t.state("after the last attempt", id, "DEAD")
	t.must(len(shown.Receipts) == Attempts, "%d receipts of %d starts", len(shown.Receipts), Attempts)
	t.refused("claim of a dead message", t.as(me, protocol.MethodClaim, args{"id": id}), refusal.MessageNotClaimable)
}

func tryLate(t *trial) {
	me := t.host(Brief, "1")
	d := t.claimed(me, Brief)
	t.expire(me, d)
	same := t.unchanged(d.ID)
	for _, method := range []string{protocol.MethodComplete, protocol.MethodFail, protocol.MethodRelease, protocol.MethodRenew, protocol.MethodCheck} {
		a := t.as(me, method, args{"id": d.ID, "token": d.Token})
		t.refused(method+" after expiry", a, refusal.LeaseExpired)
		t.must(a.err == nil || !a.err.Data.Retryable, "%s: a late settle is said to be retryable", method)
	}
	same("late settles")
}

func tryTokensGrow(t *trial) {
	one, two := t.host(Work, "1"), t.host(Work, "2")
	id := t.send(Work, "x")
	var last protocol.Token
	for i := range 6 {
		w := []*Worker{one, two}[i%2]
		d := t.claim(w, id)
		t.must(d.Token > last && d.Token <= protocol.MaxToken, "token %d after %d", d.Token, last)
		t.must(d.Attempt == i+1, "attempt %d is the %d. start", d.Attempt, i+1)
		last = d.Token
		t.granted("release", t.as(w, protocol.MethodRelease, args{"id": id, "token": d.Token}), nil)
	}
}

func tryRemaining(t *trial) {
	me := t.host(Work, "1")
	d := t.claimed(me, Work)
	limit := LongTTL.Milliseconds()
	t.must(d.RemainingMS > 0 && d.RemainingMS <= limit, "a claim of %d ms lasts %d", limit, d.RemainingMS)
	var first, second protocol.RenewResult
	t.granted("renew", t.as(me, protocol.MethodRenew, args{"id": d.ID, "token": d.Token, "progress": "half"}), &first)
	t.granted("renew again", t.as(me, protocol.MethodRenew, args{"id": d.ID, "token": d.Token}), &second)
	t.must(first.RemainingMS > 0 && first.RemainingMS <= limit, "renewed, a claim of %d ms lasts %d", limit, first.RemainingMS)
	t.must(!second.ExpiresAt.Before(first.ExpiresAt.Add(-time.Second)), "a renewal moved the expiry from %s to %s", first.ExpiresAt, second.ExpiresAt)
	shown := t.show(d.ID)
	t.must(shown.Claim != nil && shown.Claim.Progress == "half" && shown.Claim.Token == d.Token, "progress or token is not what was given")
}
