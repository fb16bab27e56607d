package mailbox

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// What was cut from a stock stays as it is, whatever is cut after it, and also where it
// was larger than expected. Hand out s.rest in close as it is, with its room, and append
// to the piece, and this fails; so it does if close does not move rest on.
func TestStock_PiecesStayAsTheyAre(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := new(stock)
		if rapid.Bool().Draw(t, "nil") {
			s = nil
		}
		var pieces [][]byte
		var want []byte
		for i := range rapid.IntRange(1, 30).Draw(t, "pieces") {
			expected := rapid.IntRange(0, 300).Draw(t, "expected")
			piece := s.open(expected)
			for range rapid.IntRange(0, 400).Draw(t, "size") {
				piece = append(piece, byte(i))
			}
			piece = s.close(piece)
			pieces, want = append(pieces, piece), append(want, piece...)
			_ = append(piece, 0xff)
		}
		if got := bytes.Join(pieces, nil); !bytes.Equal(got, want) {
			t.Fatalf("got %x, want %x", got, want)
		}
	})
}
