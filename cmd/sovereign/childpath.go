package main

import (
	"path/filepath"
	"slices"
	"strings"
)

// childEnviron is what children inherit of env: its PATH ends with the folder of
// program, so that a child finds `sovereign` wherever it was installed. A service of
// systemd is started by its full path, with a PATH that holds the system's folders only.
func childEnviron(env []string, program string) []string {
	folder := filepath.Dir(program)
	if !filepath.IsAbs(program) || strings.ContainsRune(folder, filepath.ListSeparator) {
		return env
	}
	out := slices.Clone(env)
	for i, kv := range out {
		// Without a PATH, or with an empty one, a child has its shell's own: that
		// is not narrowed to one folder.
		path, ok := strings.CutPrefix(kv, "PATH=")
		if ok && path != "" && !slices.Contains(filepath.SplitList(path), folder) {
			out[i] = kv + string(filepath.ListSeparator) + folder
		}
	}
	return out
}
