package fence

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"strings"

	"github.com/sovereign-run/sovereign/refusal"
)

const processPrefix = "proc_"

// A Process is the identity of one incarnation of a process: "proc_" and 32
// hex digits from the system's random source. It has nothing to do with the
// PID, which the system reuses (P1.1). It is a capability: whoever knows it may
// speak as the process, so it is shown whole nowhere but in the environment
// of the process itself (P10). The zero value is no process.
type Process string

// NewProcess returns an identity that no process has had before.
func NewProcess() Process {
	var b [16]byte
	_, _ = rand.Read(b[:]) // crypto/rand.Read never fails: the program would end
	return Process(processPrefix + hex.EncodeToString(b[:]))
}

// ParseProcess returns s as an identity, or a refusal bad_request that does
// not repeat s.
func ParseProcess(s string) (Process, error) {
	_, err := Process(s).bytes()
	if err != nil {
		return "", err
	}
	return Process(s), nil
}

// Short is the identity as people see it: enough to tell processes apart, too
// little to speak as one.
func (p Process) Short() string {
	if len(p) < len(processPrefix)+8 {
		return string(p)
	}
	return string(p[:len(processPrefix)+8])
}

// Format prints the short form whatever the verb, so that a whole identity
// does not reach a log or an error by accident.
func (p Process) Format(f fmt.State, _ rune) { fmt.Fprint(f, p.Short()) }

// LogValue is the short form, for handlers that do not format values.
func (p Process) LogValue() slog.Value { return slog.StringValue(p.Short()) }

// bytes returns the 16 random bytes of p.
func (p Process) bytes() ([16]byte, error) {
	var b [16]byte
	digits, ok := strings.CutPrefix(string(p), processPrefix)
	if !ok || len(digits) != 32 || strings.ToLower(digits) != digits {
		return b, refusal.New(refusal.BadRequest, "this is no process identity",
			"it must be proc_ and 32 lower-case hex digits", "use the value of SOVEREIGN_PROCESS as it is")
	}
	if _, err := hex.Decode(b[:], []byte(digits)); err != nil {
		return b, refusal.New(refusal.BadRequest, "this is no process identity",
			"it holds characters that are not hex digits", "use the value of SOVEREIGN_PROCESS as it is")
	}
	return b, nil
}

func processOf(b []byte) Process {
	var name [len(processPrefix) + 32]byte
	copy(name[:], processPrefix)
	hex.Encode(name[len(processPrefix):], b[:16])
	return Process(name[:])
}

// Bytes returns the 16 random bytes that p names, for records. ok is false
// where p is no identity.
func (p Process) Bytes() (b [16]byte, ok bool) {
	b, err := p.bytes()
	return b, err == nil
}

// ProcessOf is the inverse of Bytes.
func ProcessOf(b [16]byte) Process { return processOf(b[:]) }
