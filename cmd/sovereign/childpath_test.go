package main

import (
	"slices"
	"testing"
)

// A child's PATH ends with the program's folder, once; what there was comes first.
func TestChildEnviron_EndsWithOurFolder(t *testing.T) {
	for _, c := range []struct{ path, program, want string }{
		{"PATH=/usr/bin:/bin", "/root/go/bin/sovereign", "PATH=/usr/bin:/bin:/root/go/bin"},
		{"PATH=/root/go/bin:/bin", "/root/go/bin/sovereign", "PATH=/root/go/bin:/bin"},
		{"PATH=", "/root/go/bin/sovereign", "PATH="},
		{"PATH=/bin", "sovereign", "PATH=/bin"},
		{"PATH=/bin", "/odd:folder/sovereign", "PATH=/bin"},
	} {
		env := []string{"A=1", c.path}
		if got := childEnviron(env, c.program); !slices.Equal(got, []string{"A=1", c.want}) {
			t.Errorf("childEnviron(%q, %q) = %q, want %q", c.path, c.program, got, c.want)
		}
		if env[1] != c.path {
			t.Errorf("childEnviron changed what it was given: %q", env)
		}
	}
}
