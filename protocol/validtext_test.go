package protocol_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

// Text that the JSON decoder would replace is refused: two keys that differ would
// become one, and the second message would be lost as a duplicate. Leave out
// checkText and this fails.
func TestParseParams_RefusesTextThatIsNotUTF8(t *testing.T) {
	for _, bad := range []string{"\xff", "\xfe", `\ud800`, `\udc00x`, `\ud800A`, `\ud800\ud800`, "\ufffd\xff"} {
		for _, params := range []string{`{"to":"a","key":"?"}`, `{"to":"a","KEY":"?"}`, `{"to":"a","group":"?"}`, `{"to":"a","subject":"?"}`, `{"to":"a","from":"?"}`,
			`{"to":"?"}`, `{"to":"a","headers":{"x":"?"}}`, `{"to":"a","headers":{"?":"x"}}`, `{"to":"a","headers":{"reason":"?"}}`, `{"to":"a","new":[1.5e3,null,true,{}],"key":"?"}`} {
			params = strings.ReplaceAll(params, "?", bad)
			err := protocol.ParseParams("send", json.RawMessage(params), &protocol.SendParams{})
			if !refusal.Has(err, refusal.BadRequest) {
				t.Errorf("%q: %v", params, err)
			}
		}
		for params, parse := range map[string]func(protocol.Request) error{
			`{"id":"m1","reason":"?","new":1}`:                        parseInto[protocol.FailParams],
			`{"fail":{"id":"m1","token":1,"reason":"?"}}`:             parseInto[protocol.SettleItem],
			`{"id":"m1","token":1,"progress":"?"}`:                    parseInto[protocol.RenewParams],
			`{"items":[{"complete":{"send":[{"key":"?"}]}}],"new":1}`: parseInto[protocol.SettleItems],
		} {
			params = strings.ReplaceAll(params, "?", bad)
			if err := parse(protocol.Request{Method: "x", Params: json.RawMessage(params)}); err != nil {
				t.Errorf("%q: %v", params, err)
			}
		}
	}
	for _, good := range []string{"\ufffd", `\ufffd`, `\ud83d\ude00`, `\\ud800`, "é"} {
		params := `{"To":"a","new":1,"key":"` + good + `"}`
		if err := protocol.ParseParams("send", json.RawMessage(params), &protocol.SendParams{}); err != nil {
			t.Errorf("%q: %v", params, err)
		}
	}
}
