package lazyfs_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/sovereign-run/sovereign/store/powercut/lazyfs"
)

// What a cut leaves: contents by syncs of files, names by syncs of folders, sectors
// apart from one another.
func TestDisk_Cut(t *testing.T) {
	const file, sub = 2, 3
	d := lazyfs.NewDisk(lazyfs.Image{})
	names := func(keep lazyfs.Keep) string {
		return strings.Join(slices.Sorted(maps.Keys(d.Cut(keep))), " ")
	}
	content := func(name string, keep lazyfs.Keep) string { return string(d.Cut(keep)[name].Data) }

	d.Apply(lazyfs.Op{Kind: lazyfs.Create, Node: lazyfs.Root, Name: "a", Child: file})
	d.Apply(lazyfs.Op{Kind: lazyfs.Write, Node: file, Data: []byte("old")})
	d.Apply(lazyfs.Op{Kind: lazyfs.Sync, Node: file})
	if got := names(lazyfs.None); got != "" {
		t.Errorf("a name is durable before its folder was synced: %q", got)
	}
	d.Apply(lazyfs.Op{Kind: lazyfs.Sync, Node: lazyfs.Root})
	d.Apply(lazyfs.Op{Kind: lazyfs.Write, Node: file, Data: []byte("new")})
	if none, all := content("a", lazyfs.None), content("a", lazyfs.All); none != "old" || all != "new" {
		t.Errorf("got %q and %q", none, all)
	}
	d.Apply(lazyfs.Op{Kind: lazyfs.Lose, Node: file})
	d.Apply(lazyfs.Op{Kind: lazyfs.Sync, Node: file})
	if got := content("a", lazyfs.All); got != "old" {
		t.Errorf("what a failed sync lost is there: %q", got)
	}
	d.Apply(lazyfs.Op{Kind: lazyfs.Rename, Node: lazyfs.Root, Name: "a", To: "b", Child: file})
	d.Apply(lazyfs.Op{Kind: lazyfs.Folder, Node: lazyfs.Root, Name: "c", Child: sub})
	if none, all := names(lazyfs.None), names(lazyfs.All); none != "a" || all != "b c" {
		t.Errorf("got %q and %q", none, all)
	}

	d.Apply(lazyfs.Op{Kind: lazyfs.Write, Node: file, Off: 500, Data: []byte(strings.Repeat("x", 600))})
	seen := map[string]bool{}
	for seed := range uint64(64) {
		image := d.Cut(lazyfs.Some(seed))
		data := append(image["a"].Data, image["b"].Data...)
		s := ""
		for _, at := range []int{500, 512, 1024} { // the sectors that the write touches
			if at < len(data) && data[at] == 'x' {
				s += "x"
			} else {
				s += "."
			}
		}
		seen[s] = true
	}
	if len(seen) != 8 {
		t.Errorf("not every subset of three sectors was seen: %v", slices.Sorted(maps.Keys(seen)))
	}
}
