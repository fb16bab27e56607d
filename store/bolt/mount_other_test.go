//go:build !linux

package bolt_test

import "testing"

func mountTmpfs(t *testing.T, dir string) {
	t.Helper()
	t.Skip("a small disk is made only on Linux")
}

func mountExt4(t *testing.T, dir string) {
	t.Helper()
	t.Skip("a small disk is made only on Linux")
}

func mountJournaled(t *testing.T, dir string) {
	t.Helper()
	t.Skip("a small disk is made only on Linux")
}

func remountReadOnly(t *testing.T, dir string) {
	t.Helper()
	t.Skip("a disk is remounted only on Linux")
}
