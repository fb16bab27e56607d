package process_test

import (
	"os"
	"syscall"
	"testing"

	"github.com/sovereign-run/sovereign/supervisor/process"
)

// What a spawn and exit of /bin/true costs beyond the bare system calls. The
// benchmark program itself becomes the supervisor: run it without tests beside.
//
//	go test -run '^$' -bench Spawn ./supervisor/process
func BenchmarkSpawn(b *testing.B) {
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			pid, err := syscall.ForkExec("/bin/true", []string{"true"}, &syscall.ProcAttr{Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setsid: true}})
			if err != nil {
				b.Fatal(err)
			}
			if _, err := syscall.Wait4(pid, nil, 0, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	h, err := process.NewHost(nil)
	if err != nil {
		b.Fatal(err)
	}
	defer h.Close()
	for name, spec := range map[string]process.Spec{
		"session": {},
		"cgroup":  {Cgroup: "bench"},
		"nofile":  {NoFile: 100},
	} {
		b.Run(name, func(b *testing.B) {
			spec.Argv, spec.Umask = []string{"/bin/true"}, -1
			for b.Loop() {
				p, err := h.Start(b.Context(), spec)
				if err != nil {
					b.Fatal(err)
				}
				<-p.Exited()
				if err := p.KillTree(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	// As many descriptors as a thousand actors need: it is to cost what it costs
	// without them.
	var open []*os.File
	for range 4000 {
		f, err := os.Open(os.DevNull)
		if err != nil {
			b.Fatal(err)
		}
		open = append(open, f)
	}
	defer func() {
		for _, f := range open {
			f.Close()
		}
	}()
	b.Run("with 4000 descriptors", func(b *testing.B) {
		for b.Loop() {
			p, err := h.Start(b.Context(), process.Spec{Argv: []string{"/bin/true"}, Umask: -1})
			if err != nil {
				b.Fatal(err)
			}
			<-p.Exited()
			if err := p.KillTree(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
}
