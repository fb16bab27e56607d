// Package refusal is the answer that says no for a reason.
//
// Every layer refuses in the same shape: a stable category for programs, what
// happened, why, and what to run next for people, and whether asking again
// later can help. The categories are part of the public interface
// (docs/interface.md); their texts are not.
package refusal

import "errors"

// A Category is the stable name of a kind of refusal. Zero is no category.
type Category string

// The categories of docs/interface.md, and the few that errors without a
// refusal of their own are reported under.
const (
	ActorLeaseHeld      Category = "actor_lease_held"
	ActorLeaseLost      Category = "actor_lease_lost"
	LeaseExpired        Category = "lease_expired"
	LeaseCorrupt        Category = "lease_corrupt"
	FencingTokenStale   Category = "fencing_token_stale"
	AlreadySettled      Category = "already_settled"
	MessageNotClaimable Category = "message_not_claimable"
	NotAddressee        Category = "not_addressee"
	MessageMissing      Category = "message_missing"
	WrongState          Category = "wrong_state"
	UnknownActor        Category = "unknown_actor"
	InboxFull           Category = "inbox_full"
	MessageTooLarge     Category = "message_too_large"
	DuplicateKey        Category = "duplicate_key"
	DiskFull            Category = "disk_full"
	StoreLocked         Category = "store_locked"
	StoreCorrupt        Category = "store_corrupt"
	StoreRolledBack     Category = "store_rolled_back"
	PermissionDenied    Category = "permission_denied"
	BadRequest          Category = "bad_request"

	// OutcomeUnknown: a write may or may not have happened. The store serves
	// nothing more; the supervisor stops and recovery decides (P4.10).
	OutcomeUnknown Category = "outcome_unknown"
	// Unavailable: the supervisor is not running, or is stopping.
	Unavailable Category = "unavailable"
	// Failed: an error that is none of the above.
	Failed Category = "failed"
)

// An Error is one refusal. Message says what happened, Why the reason, and Next
// what to run or do; Why and Next may be empty. Retryable says that the same
// request can succeed later without anything being repaired.
type Error struct {
	Category  Category
	Message   string
	Why       string
	Next      string
	Retryable bool

	cause error
}

// New returns a refusal that is not retryable.
func New(c Category, message, why, next string) *Error {
	return &Error{Category: c, Message: message, Why: why, Next: next}
}

// Because returns a copy of e that wraps cause, for errors.Is and errors.As.
func (e *Error) Because(cause error) *Error {
	c := *e
	c.cause = cause
	return &c
}

// Later returns a copy of e that is marked retryable.
func (e *Error) Later() *Error {
	c := *e
	c.Retryable = true
	return &c
}

// Error is the message and the reason on one line, without the category.
func (e *Error) Error() string {
	if e.Why == "" {
		return e.Message
	}
	return e.Message + ": " + e.Why
}

// Unwrap returns the cause given to Because, or nil.
func (e *Error) Unwrap() error { return e.cause }

// Is reports whether target is a refusal of the same category, so that
// errors.Is(err, &refusal.Error{Category: refusal.InboxFull}) works.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Category == e.Category
}

// Of returns the refusal in err's chain, or, where there is none, one of the
// category Failed with err's text. Of(nil) is nil.
func Of(err error) *Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return (&Error{Category: Failed, Message: err.Error()}).Because(err)
}

// Has reports whether err holds a refusal of category c.
func Has(err error, c Category) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Category == c
}
