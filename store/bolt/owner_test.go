package bolt_test

import (
	"os"
	"strconv"
	"syscall"
	"testing"

	"github.com/sovereign-run/sovereign/store"
	"github.com/sovereign-run/sovereign/store/bolt"
)

// serveAs opens the store in args[0] for writing as the user args[1], changes it, and
// closes it.
func serveAs(args []string) {
	uid, err := strconv.Atoi(args[1])
	exitOn(err)
	exitOn(syscall.Setgid(uid))
	exitOn(syscall.Setuid(uid))
	db, err := bolt.Open(args[0], bolt.Options{})
	exitOn(err)
	exitOn(db.Update(ctx, func(tx store.Tx) error { tx.Put([]byte("k"), []byte("v")); return nil }))
	exitOn(db.Close())
}

// What root does to a stopped store leaves all its files to the user whose folder it
// is, who can go on: whatever was missing, and whatever root has written anew. Open one
// of the files without openFile and this fails.
func TestOpen_ByRootLeavesTheStoreToItsUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can write into another user's folder")
	}
	const user = 65534
	file, _ := withKey(t, "a")
	for name, do := range map[string]func(t *testing.T, dir string){
		"create":  func(t *testing.T, dir string) { closeStore(t, open(t, dir, bolt.Options{})) },
		"restore": func(t *testing.T, dir string) { closeStore(t, restoreStore(t, dir, file, bolt.Options{})) },
		"compact": func(t *testing.T, dir string) {
			if _, _, err := bolt.Compact(ctx, dir, bolt.Options{}); err != nil {
				t.Fatal(err)
			}
		},
		"accept": func(t *testing.T, dir string) { closeStore(t, open(t, dir, bolt.Options{AcceptRollback: true})) },
		"what root has left": func(t *testing.T, dir string) {
			for _, name := range []string{bolt.DataFile, bolt.MarkFile} {
				write(t, dir, name+".new", []byte("x"))
			}
			closeStore(t, open(t, dir, bolt.Options{}))
		},
		"restore over what root has left": func(t *testing.T, dir string) {
			write(t, dir, bolt.DataFile+".new", []byte("x"))
			closeStore(t, restoreStore(t, dir, file, bolt.Options{}))
		},
	} {
		for _, there := range []bool{false, true} {
			t.Run(name+",there="+strconv.FormatBool(there), func(t *testing.T) {
				dir, err := os.MkdirTemp("", "bolt-test-") // t.TempDir is closed to others
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { os.RemoveAll(dir) })
				if err := os.Chown(dir, user, user); err != nil {
					t.Fatal(err)
				}
				serve := func() {
					t.Helper()
					if err := start(t, "serve", dir, strconv.Itoa(user)).wait(); err != nil {
						t.Errorf("its user: %v", err)
					}
				}
				if there {
					serve()
				}
				do(t, dir)
				entries, err := os.ReadDir(dir)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range entries {
					info, err := e.Info()
					if err != nil {
						t.Fatal(err)
					}
					if s := info.Sys().(*syscall.Stat_t); s.Uid != user || s.Gid != user {
						t.Errorf("%s belongs to %d:%d", e.Name(), s.Uid, s.Gid)
					}
				}
				serve()
			})
		}
	}
}

// A folder that root makes for a store, and each above it, belongs to the owner of the one
// that it is in, who can go on with the store. Make it with os.MkdirAll and this fails.
func TestOpen_ByRootLeavesNewFoldersToTheirUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can write into another user's folder")
	}
	const user = 65534
	file, _ := withKey(t, "a")
	for name, do := range map[string]func(t *testing.T, dir string){
		"open":    func(t *testing.T, dir string) { closeStore(t, open(t, dir, bolt.Options{})) },
		"restore": func(t *testing.T, dir string) { closeStore(t, restoreStore(t, dir, file, bolt.Options{})) },
	} {
		for _, suffix := range []string{"", "/"} {
			t.Run(name+suffix, func(t *testing.T) {
				project, err := os.MkdirTemp("", "bolt-test-") // t.TempDir is closed to others
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { os.RemoveAll(project) })
				if err := os.Chown(project, user, user); err != nil {
					t.Fatal(err)
				}
				dir := project + "/state/mail"
				do(t, dir+suffix)
				for _, path := range []string{project + "/state", dir} {
					info, err := os.Stat(path)
					if err != nil {
						t.Fatal(err)
					}
					if s := info.Sys().(*syscall.Stat_t); s.Uid != user || s.Gid != user {
						t.Errorf("%s belongs to %d:%d", path, s.Uid, s.Gid)
					}
				}
				if err := start(t, "serve", dir, strconv.Itoa(user)).wait(); err != nil {
					t.Errorf("its user: %v", err)
				}
			})
		}
		// A relative name, from a working directory of root's.
		t.Chdir(t.TempDir())
		do(t, "new")
	}
}
