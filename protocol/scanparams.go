package protocol

import (
	"encoding/json"
	"unicode/utf8"
)

// The params and the envelope of the requests that come for each message, as a
// scanner reads them; those of others are left to encoding/json.

// scanRequest reads a line as a request in the plain form. Its strings and params
// are copies.
func scanRequest(line []byte) (req Request, ok bool) {
	s := scanner{in: line}
	var params []byte
	var members seen
	for more := s.open('{'); more; more = s.more('{') {
		switch string(s.key()) {
		case "jsonrpc":
			s.once(&members, 0)
			if version, _ := s.literal(); string(version) != "2.0" {
				return req, false
			}
			req.JSONRPC = "2.0"
		case "id":
			s.once(&members, 1)
			req.ID = s.id()
		case "method":
			s.once(&members, 2)
			req.Method = s.method()
		case "params":
			s.once(&members, 3)
			if s.space() != '{' {
				return req, false
			}
			start := s.pos
			s.skip(0)
			params = line[start:s.pos]
		case "process":
			s.once(&members, 4)
			req.Process = s.text()
		case "lease_token":
			s.once(&members, 5)
			req.LeaseToken = s.token()
		default:
			return req, false
		}
	}
	if !s.end() || req.JSONRPC == "" || req.Method == "" {
		return req, false
	}
	if params != nil {
		req.Params = append(make([]byte, 0, len(params)), params...)
	}
	return req, true
}

// id reads a number or a string and keeps it as it stands.
func (s *scanner) id() ID {
	c := s.space()
	start := s.pos
	if c == '"' {
		s.skipString()
	} else {
		s.int()
	}
	id := s.in[start:s.pos]
	if len(id) > maxID || c == '"' && !utf8.Valid(id) {
		s.bad = true // who reads it again says what is wrong with it
	}
	return ID(id)
}

// method reads a method's name. The names that are known are not copied.
func (s *scanner) method() string {
	name, escaped := s.literal()
	if escaped {
		s.bad = true
		return ""
	}
	switch string(name) {
	case MethodClaim:
		return MethodClaim
	case MethodComplete:
		return MethodComplete
	case MethodSend:
		return MethodSend
	case MethodRenew:
		return MethodRenew
	case MethodFail:
		return MethodFail
	case MethodRelease:
		return MethodRelease
	case MethodSettle:
		return MethodSettle
	case MethodCheck:
		return MethodCheck
	case MethodPing:
		return MethodPing
	}
	return string(name)
}

// scanParams reads params in the plain form into out. It is false, and out
// unchanged, for params in any other form and for any other type of out.
func scanParams(params []byte, out any) bool {
	s := scanner{in: params}
	switch out := out.(type) {
	case *ClaimParams:
		return keep(&s, s.claim(), out)
	case *CompleteParams:
		return keep(&s, s.complete(), out)
	case *SendParams:
		return keep(&s, s.send(), out)
	case *RenewParams:
		return keep(&s, s.renew(), out)
	case *FailParams:
		return keep(&s, s.fail(), out)
	case *ClaimRef:
		return keep(&s, s.claimRef(), out)
	case *SettleItems:
		return keep(&s, s.settleItems(), out)
	case *SettleItem:
		return keep(&s, s.settleItem(), out)
	case *PingParams:
		return keep(&s, s.ping(), out)
	}
	return false
}

// keep stores what was read, if it was read to the end.
func keep[P any](s *scanner, p P, out *P) bool {
	if !s.end() {
		return false
	}
	*out = p
	return true
}

// The members of Identity, which stand among those of the params.
const (
	memberProcess = 30 + iota
	memberLeaseToken
)

// identity reads the value of a member of Identity. Any other member makes s bad.
func (s *scanner) identity(who *Identity, members *seen, key []byte) {
	switch string(key) {
	case "process":
		s.once(members, memberProcess)
		who.Process = s.text()
	case "lease_token":
		s.once(members, memberLeaseToken)
		who.LeaseToken = s.token()
	default:
		s.bad = true
	}
}

func (s *scanner) ping() (p PingParams) {
	var members seen
	for more := s.open('{'); more; more = s.more('{') {
		s.identity(&p.Identity, &members, s.key())
	}
	return p
}

func (s *scanner) claim() (p ClaimParams) {
	var members seen
	for more := s.open('{'); more; more = s.more('{') {
		switch key := s.key(); string(key) {
		case "wait":
			s.once(&members, 0)
			p.Wait = s.duration()
		case "max":
			s.once(&members, 1)
			p.Max = s.int()
		case "id":
			s.once(&members, 2)
			p.ID = s.text()
		case "request":
			s.once(&members, 3)
			p.Request = s.text()
		default:
			s.identity(&p.Identity, &members, key)
		}
	}
	return p
}

func (s *scanner) renew() (p RenewParams) {
	var members seen
	for more := s.open('{'); more; more = s.more('{') {
		switch key := s.key(); string(key) {
		case "id":
			s.once(&members, 0)
			p.ID = s.text()
		case "token":
			s.once(&members, 1)
			p.Token = s.token()
		case "progress":
			s.once(&members, 2)
			progress := s.text()
			p.Progress = &progress
		default:
			s.identity(&p.Identity, &members, key)
		}
	}
	return p
}

func (s *scanner) claimRef() (p ClaimRef) {
	var members seen
	for more := s.open('{'); more; more = s.more('{') {
		switch key := s.key(); string(key) {
		case "id":
			s.once(&members, 0)
			p.ID = s.text()
		case "token":
			s.once(&members, 1)
			p.Token = s.token()
		default:
			s.identity(&p.Identity, &members, key)
		}
	}
	return p
}

func (s *scanner) complete() (p CompleteParams) {
	var members seen
	for more := s.open('{'); more; more = s.more('{') {
		switch key := s.key(); string(key) {
		case "id":
			s.once(&members, 0)
			p.ID = s.text()
		case "token":
			s.once(&members, 1)
			p.Token = s.token()
		case "result":
			s.once(&members, 2)
			p.Result = s.body()
		case "send":
			s.once(&members, 3)
			p.Send = []Outgoing{}
			for more := s.open('['); more; more = s.more('[') {
				p.Send = append(p.Send, s.outgoing())
			}
		case "next":
			s.once(&members, 4)
			next := s.next()
			p.Next = &next
		default:
			s.identity(&p.Identity, &members, key)
		}
	}
	return p
}

func (s *scanner) next() (n Next) {
	var members seen
	for more := s.open('{'); more; more = s.more('{') {
		switch string(s.key()) {
		case "wait":
			s.once(&members, 0)
			n.Wait = s.duration()
		case "max":
			s.once(&members, 1)
			n.Max = s.int()
		default:
			s.bad = true
		}
	}
	return n
}

func (s *scanner) fail() (p FailParams) {
	var members seen
	for more := s.open('{'); more; more = s.more('{') {
		switch key := s.key(); string(key) {
		case "id":
			s.once(&members, 0)
			p.ID = s.text()
		case "token":
			s.once(&members, 1)
			p.Token = s.token()
		case "reason":
			s.once(&members, 2)
			p.Reason = s.text()
		case "delay":
			s.once(&members, 3)
			delay := s.duration()
			p.Delay = &delay
		case "dead":
			s.once(&members, 4)
			p.Dead = s.bool()
		default:
			s.identity(&p.Identity, &members, key)
		}
	}
	return p
}

func (s *scanner) settleItems() (p SettleItems) {
	var members seen
	for more := s.open('{'); more; more = s.more('{') {
		key := s.key()
		if string(key) != "items" {
			s.identity(&p.Identity, &members, key)
			continue
		}
		s.once(&members, 0)
		p.Items = []json.RawMessage{}
		for more := s.open('['); more; more = s.more('[') {
			s.space()
			start := s.pos
			s.skip(0)
			p.Items = append(p.Items, json.RawMessage(s.in[start:s.pos:s.pos]))
		}
	}
	return p
}

func (s *scanner) settleItem() (item SettleItem) {
	var members seen
	for more := s.open('{'); more; more = s.more('{') {
		switch string(s.key()) {
		case "complete":
			s.once(&members, 0)
			p := s.complete()
			item.Complete = &p
		case "fail":
			s.once(&members, 1)
			p := s.fail()
			item.Fail = &p
		case "release":
			s.once(&members, 2)
			p := s.claimRef()
			item.Release = &p
		default:
			s.bad = true
		}
	}
	return item
}

func (s *scanner) send() (p SendParams) {
	var members seen
	for more := s.open('{'); more; more = s.more('{') {
		key := s.key()
		switch {
		case s.member(&p.Outgoing, &members, key):
		case string(key) == "from":
			s.once(&members, 28)
			p.From = s.text()
		case string(key) == "claim":
			s.once(&members, 29)
			claim := s.claimRef()
			p.Claim = &claim
		default:
			s.identity(&p.Identity, &members, key)
		}
	}
	return p
}

func (s *scanner) outgoing() (o Outgoing) {
	var members seen
	for more := s.open('{'); more; more = s.more('{') {
		if !s.member(&o, &members, s.key()) {
			s.bad = true
		}
	}
	return o
}

// member reads the value of a member of Outgoing. It is false, and reads nothing,
// where key is none.
func (s *scanner) member(o *Outgoing, members *seen, key []byte) bool {
	switch string(key) {
	case "to":
		s.once(members, 0)
		o.To = s.text()
	case "body":
		s.once(members, 1)
		o.Body = s.body()
	case "subject":
		s.once(members, 2)
		o.Subject = s.text()
	case "headers":
		s.once(members, 3)
		o.Headers = s.texts()
	case "key":
		s.once(members, 4)
		o.Key = s.text()
	case "key_ttl":
		s.once(members, 5)
		o.KeyTTL = s.duration()
	case "delay":
		s.once(members, 6)
		o.Delay = s.duration()
	case "at":
		s.once(members, 7)
		o.At = s.time()
	case "priority":
		s.once(members, 8)
		o.Priority = s.int()
	case "group":
		s.once(members, 9)
		o.Group = s.text()
	case "ttl":
		s.once(members, 10)
		o.TTL = s.duration()
	default:
		return false
	}
	return true
}
