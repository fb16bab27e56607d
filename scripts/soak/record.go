package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

// The kinds of a Line.
const (
	kindBegin    = "begin"    // a process has begun: its identity, and that it holds its locks
	kindOverlap  = "overlap"  // its slot's lock was held: an earlier life of the slot is not over
	kindSurvivor = "survivor" // something that an earlier supervisor started is still alive
	kindCall     = "call"     // a request is about to be made
	kindAnswer   = "answer"   // its answer has come
)

// unknown is the category of an answer that did not come: what was asked may have
// been done.
const unknown refusal.Category = "unknown"

// The methods that a Line has beside those of the protocol.
const (
	methodStart  = "start" // a task was started with its claim; it has no answer
	methodCancel = "cancel"
	methodRetry  = "retry"
	methodDrop   = "drop"
)

// A Line is one line of a log. What does not apply is zero. The lines of one log
// are in the order in which they were written.
type Line struct {
	At   int64  `json:"at"` // nanoseconds on a clock that all processes of the machine share; 0 in sh
	Kind string `json:"kind"`
	Log  string `json:"-"` // the file that it was read from

	// Of a process.
	Generation int            `json:"generation,omitempty"` // the ordinal of its supervisor
	PID        int            `json:"pid,omitempty"`
	Actor      string         `json:"actor,omitempty"`
	Slot       int            `json:"slot,omitempty"`
	Process    string         `json:"process,omitempty"` // shortened, as in receipts
	Lease      protocol.Token `json:"lease,omitempty"`

	// Of a call.
	Call    int            `json:"call,omitempty"` // pairs a request with its answer
	Method  string         `json:"method,omitempty"`
	Message string         `json:"message,omitempty"`
	Token   protocol.Token `json:"token,omitempty"` // of the claim that the request names
	Attempt int            `json:"attempt,omitempty"`
	Dead    bool           `json:"dead,omitempty"`   // of a fail
	Result  string         `json:"result,omitempty"` // of a completion
	To      string         `json:"to,omitempty"`     // of a send
	Nonce   string         `json:"nonce,omitempty"`  // of a send: its subject, which no other content has
	Key     string         `json:"key,omitempty"`    // of a send
	Sends   []string       `json:"sends,omitempty"`  // nonces that a completion carries

	// Of an answer.
	Category  refusal.Category      `json:"category,omitempty"` // "" is yes
	Why       string                `json:"why,omitempty"`
	ID        string                `json:"id,omitempty"` // of what was sent
	Duplicate bool                  `json:"duplicate,omitempty"`
	State     protocol.MessageState `json:"state,omitempty"`
	Claimed   []Grant               `json:"claimed,omitempty"`
	Raw       json.RawMessage       `json:"raw,omitempty"` // what a command printed, null where it was killed
}

// A Grant is one claimed message of an answer.
type Grant struct {
	Message string         `json:"message"`
	Token   protocol.Token `json:"token"`
	Attempt int            `json:"attempt"`
	Nonce   string         `json:"nonce"`
}

// A Recorder appends lines to a log. Each line is one write, so that a SIGKILL
// leaves whole lines. Its methods may be called from any goroutine.
type Recorder struct {
	mu   sync.Mutex
	file *os.File
	call int
	err  error // the first write that failed
}

// openRecorder makes the log at path, which must not be there.
func openRecorder(path string) (*Recorder, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make a log: %w", err)
	}
	return &Recorder{file: f}, nil
}

// Note writes a line as it is, with the time.
func (r *Recorder) Note(l Line) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.write(l)
}

// Call writes a request and returns its number, for Answer.
func (r *Recorder) Call(l Line) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.call++
	l.Kind, l.Call = kindCall, r.call
	r.write(l)
	return l.Call
}

// Answer writes what came of a request. A refusal becomes its category, an answer
// that did not come unknown.
func (r *Recorder) Answer(call int, l Line, err error) {
	l.Kind, l.Call = kindAnswer, call
	if err != nil {
		l.Category, l.Why = categoryOf(err), err.Error()
	}
	r.Note(l)
}

func (r *Recorder) write(l Line) {
	l.At = clock()
	b, err := json.Marshal(l)
	if err == nil {
		_, err = r.file.Write(append(b, '\n'))
	}
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("write a log: %w", err)
	}
}

// Close returns the first error of a write.
func (r *Recorder) Close() error { return errors.Join(r.err, r.file.Close()) }

// categoryOf is the category of a refusal that came as an answer, else unknown.
func categoryOf(err error) refusal.Category {
	if e, ok := errors.AsType[*protocol.Error](err); ok && e.Data.Category != refusal.OutcomeUnknown {
		return e.Data.Category
	}
	return unknown
}

// printed takes the answer from what a command has printed.
func (l *Line) printed() {
	var out struct {
		protocol.SendResult
		State    *protocol.MessageState `json:"state"`
		Messages []protocol.Delivery    `json:"messages"`
		Error    *protocol.ErrorData    `json:"error"`
	}
	switch err := json.Unmarshal(l.Raw, &out); {
	case err == nil && out.Error != nil:
		l.Category, l.Why = out.Error.Category, out.Error.Why
		if l.Category == refusal.Unavailable || l.Category == refusal.OutcomeUnknown {
			l.Category = unknown
		}
	case err != nil || string(l.Raw) == "null":
		l.Category = unknown
	default:
		l.ID, l.Duplicate = out.ID, out.Duplicate
		if out.State != nil {
			l.State = *out.State
		}
		for _, d := range out.Messages {
			l.Claimed = append(l.Claimed, Grant{Message: d.ID, Token: d.Token, Attempt: d.Attempt, Nonce: d.Subject})
		}
	}
}

// readLogs reads all logs in folder. The last line of a log may be cut off where
// its writer, a shell, was killed: it is left out.
func readLogs(folder string) ([]Line, error) {
	var out []Line
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".jsonl") {
			return err
		}
		lines, err := readLog(path)
		out = append(out, lines...)
		return err
	})
	return out, err
}

func readLog(path string) ([]Line, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []Line
	for r, n := bufio.NewReader(f), 1; ; n++ {
		text, err := r.ReadBytes('\n')
		if err != nil {
			return out, nil // the end; a cut line is no line
		}
		var l Line
		if err := json.Unmarshal(text, &l); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		l.Log = filepath.Base(path)
		if l.Raw != nil {
			l.printed()
		}
		out = append(out, l)
	}
}
