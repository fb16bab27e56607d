package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestLocate_OrderAndIdentity: --data, else SOVEREIGN_SOCKET, else SOVEREIGN_DATA,
// else ./.sovereign; only a --data that is certainly another store leaves the
// identity behind (P8).
func TestLocate_OrderAndIdentity(t *testing.T) {
	dir := t.TempDir()
	ours, other := filepath.Join(dir, "ours"), filepath.Join(dir, "other")
	for _, d := range []string{ours, other} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(ours, link); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(ours, "worker.sock")
	const me = "proc_00112233445566778899aabbccddeeff"
	for _, tc := range []struct {
		name, flag string
		env        map[string]string
		data       string
		identity   bool
	}{
		{"nothing", "", nil, ".sovereign", false},
		{"data", "", map[string]string{"SOVEREIGN_DATA": other}, other, false},
		{"socket before data", "", map[string]string{"SOVEREIGN_DATA": other, "SOVEREIGN_SOCKET": socket}, ours, false},
		{"flag before all", other, map[string]string{"SOVEREIGN_DATA": ours, "SOVEREIGN_SOCKET": socket}, other, false},
		{"a child", "", map[string]string{"SOVEREIGN_PROCESS": me, "SOVEREIGN_SOCKET": socket}, ours, true},
		{"a child, its own store by name", ours, map[string]string{"SOVEREIGN_PROCESS": me, "SOVEREIGN_SOCKET": socket}, ours, true},
		{"a child, its own store by a link", link, map[string]string{"SOVEREIGN_PROCESS": me, "SOVEREIGN_SOCKET": socket}, link, true},
		{"a child, another store", other, map[string]string{"SOVEREIGN_PROCESS": me, "SOVEREIGN_SOCKET": socket}, other, false},
		{"a child, a store that is not there", filepath.Join(dir, "no"), map[string]string{"SOVEREIGN_PROCESS": me, "SOVEREIGN_SOCKET": socket}, filepath.Join(dir, "no"), false},
		{"a child, nobody knows whose", other, map[string]string{"SOVEREIGN_PROCESS": me}, other, true},
		{"a child, its store is gone", other, map[string]string{"SOVEREIGN_PROCESS": me, "SOVEREIGN_SOCKET": filepath.Join(dir, "gone", "worker.sock")}, other, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := locate(tc.flag, func(name string) string { return tc.env[name] })
			if got.data != tc.data || (got.inherited.Process != "") != tc.identity {
				t.Errorf("got %+v, want data %s, identity %v", got, tc.data, tc.identity)
			}
		})
	}
}
