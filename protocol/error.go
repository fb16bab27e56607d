package protocol

import "github.com/sovereign-run/sovereign/refusal"

// The codes of JSON-RPC 2.0. What was refused for a reason has CodeRefused;
// programs go by data.category.
const (
	CodeParse          = -32700 // the line is no JSON, or too long
	CodeInvalidRequest = -32600 // it is JSON, but no request
	CodeUnknownMethod  = -32601
	CodeInvalidParams  = -32602
	CodeRefused        = -32000
)

// An Error is the error of a response.
type Error struct {
	Code    int       `json:"code"`
	Message string    `json:"message"`
	Data    ErrorData `json:"data"`
}

// ErrorData is the refusal behind an error.
type ErrorData struct {
	Category  refusal.Category `json:"category"`
	Why       string           `json:"why"`
	Next      string           `json:"next"`
	Retryable bool             `json:"retryable"`
	Problems  []ConfigProblem  `json:"problems,omitempty"` // of an actors.yaml
}

// A ConfigProblem is one thing that is wrong with an actors.yaml, and where: Line and Column
// from 1, 0 where the file as a whole is meant.
type ConfigProblem struct {
	Path    string `json:"path"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
}

// ErrorOf is err as it goes over the wire. ErrorOf(nil) is nil.
func ErrorOf(err error) *Error {
	e := refusal.Of(err)
	if e == nil {
		return nil
	}
	code := CodeRefused
	if e.Category == refusal.BadRequest {
		code = CodeInvalidParams
	}
	return &Error{Code: code, Message: e.Message,
		Data: ErrorData{Category: e.Category, Why: e.Why, Next: e.Next, Retryable: e.Retryable}}
}

// Coded returns a copy of e with another code.
func (e *Error) Coded(code int) *Error {
	c := *e
	c.Code = code
	return &c
}

// Refusal is e as a refusal, at the client's end. An error without a category
// becomes one of the category failed. (*Error)(nil).Refusal() is nil.
func (e *Error) Refusal() *refusal.Error {
	if e == nil {
		return nil
	}
	category := e.Data.Category
	if category == "" {
		category = refusal.Failed
	}
	r := refusal.New(category, e.Message, e.Data.Why, e.Data.Next)
	r.Retryable = e.Data.Retryable
	return r
}

// Error is the message and the reason on one line.
func (e *Error) Error() string { return e.Refusal().Error() }

// Unwrap is the refusal, so that refusal.Of and refusal.Has see it.
func (e *Error) Unwrap() error { return e.Refusal() }
