package worker

import (
	"errors"
	"time"
)

// Release, returned by a handler, gives the message back at once, uncharged.
//
//lint:ignore ST1012 it reads as what a handler answers: return worker.Release
var Release = errors.New("released by its worker")

type retryError struct {
	delay time.Duration
	err   error
}

func (e *retryError) Error() string { return e.err.Error() }
func (e *retryError) Unwrap() error { return e.err }

// Retry fails the attempt, and has the message tried again after delay instead
// of the actor's backoff. The attempt is charged. err is the reason; nil gives a
// general one.
func Retry(delay time.Duration, err error) error {
	if err == nil {
		err = errors.New("to be tried again")
	}
	return &retryError{delay: max(0, delay), err: err}
}

type deadError struct{ err error }

func (e *deadError) Error() string { return e.err.Error() }
func (e *deadError) Unwrap() error { return e.err }

// Dead fails the attempt for good: the message is DEAD, and waits for a person.
// err is the reason; nil gives a general one.
func Dead(err error) error {
	if err == nil {
		err = errors.New("given up by its worker")
	}
	return &deadError{err: err}
}
