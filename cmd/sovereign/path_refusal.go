package main

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/sovereign-run/sovereign/refusal"
)

// mayNot is the refusal for a path that could not be used as doing says: one that is
// not there or is of another kind, bad_request; one that this user may not use,
// permission_denied. Other errors keep their text.
func mayNot(doing string, err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return refusal.New(refusal.PermissionDenied, doing, reason(err),
			"run the command as the user who owns it, or name another place").Because(err)
	case errors.Is(err, fs.ErrNotExist):
		return refusal.New(refusal.BadRequest, doing, "it does not exist", "name one that does").Because(err)
	case errors.Is(err, syscall.ENOTDIR):
		return refusal.New(refusal.BadRequest, doing, "there is a file where a folder should be", "name a folder").Because(err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// cannotRead is the refusal for an input, a file or -, that could not be read as doing
// says: bad_request or, where this user may not, permission_denied.
func cannotRead(doing string, err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return mayNot(doing, err)
	case errors.Is(err, fs.ErrNotExist):
		return usage(doing, "it does not exist", "name a file that does, or - for the standard input")
	}
	return usage(doing, reason(err), "name a file that can be read, or - for the standard input")
}
