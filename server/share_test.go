package server_test

import "testing"

// H2: connections are bounded together by what the limit of files leaves, those to
// worker.sock so that there is room for people; who finds none is told so in one line, and
// one that ends makes room. Leave fits out of greet and this fails; leave out add(as, -1)
// and it fails at the end.
func TestLimit_KeepsRoomForPeople(t *testing.T) {
	h := newHouse(t)
	h.server.Limit(8)
	var shells []*peer
	for range 6 {
		p := h.shell()
		want(t, p.ask("nothing", "{}"), "bad_request")
		shells = append(shells, p)
	}
	want(t, h.shell().read(), "unavailable")
	for range 2 {
		want(t, h.people().ask("nothing", "{}"), "bad_request")
	}
	want(t, h.people().read(), "unavailable")
	if err := shells[0].conn.Close(); err != nil {
		t.Fatal(err)
	}
	for { // the server sees the end in its own time
		p := h.people()
		_, _ = p.conn.Write([]byte(`{"jsonrpc":"2.0","id":1,"method":"nothing","params":{}}` + "\n")) // it may be turned away already
		if l := p.read(); l.Error.Data.Category == "bad_request" {
			break
		}
	}
}
