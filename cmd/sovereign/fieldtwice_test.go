package main

import "testing"

// A line that says one thing twice is told so, wherever the second stands, and no line that
// does not. Leave out a case of fieldTwice and this fails.
func TestFieldTwice(t *testing.T) {
	for line, want := range map[string]string{
		`{}`: "",
		`{"body":"a","subject":"body","from":"body"}`:                          "",
		`{"body":"a","Body":"b"}`:                                              "Body",
		`{"body":"\\","subject":"\",\"body\":\"","body":"b"}`:                  "body",
		`{"body":"a","b\u006fdy":"b"}`:                                         "body",
		`{"headers":{"a":"1","A":"2"},"body":{"base64":""}}`:                   "",
		`{"headers":{"a":"1","b":"2","a":"1"}}`:                                "a",
		`{"receipts":[{"attempt":1},{"attempt":2}],"state":"DONE"}`:            "",
		`{"receipts":[{"attempt":1,"token":2,"attempt":2}]}`:                   "attempt",
		`{"receipts":["id","id",{"id":1}],"id":"m1"}`:                          "",
		`{"claim":{"token":1},"headers":{"token":"{,\"token\":"},"token":"x"}`: "",
	} {
		if name, twice := fieldTwice([]byte(line)); twice != (want != "") || twice && name != want {
			t.Errorf("%s: %q, %v; want %q", line, name, twice, want)
		}
	}
}
