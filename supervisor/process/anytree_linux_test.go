package process_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// C1: trees of depth three, drawn at random: each process of them may have left its
// session, have lost its parent, ignore SIGTERM or stand still by SIGSTOP, and the
// leader may have ended. After SIGTERM and the kill of the tree nothing is left of
// it, and a neighbour lives. The seed is printed where this fails.
func TestKillTree_AnyTree(t *testing.T) {
	t.Parallel()
	eachTree(t, "any-tree", strconv.FormatUint(rand.Uint64(), 10))
}

func init() {
	roles["any-tree"] = func(s *supervisor) {
		seed, err := strconv.ParseUint(s.args[1], 10, 64)
		s.check(err)
		s.host()
		r := rand.New(rand.NewPCG(seed, 0))
		spec := sh("exec sleep 1000", s.args[0])
		spec.Mark, spec.Cgroup = spec.Mark+"n", ""
		spec.Env[1] += "n"
		neighbour := s.start(spec)
		for n := range 12 {
			script, count := branch(r, 3)
			leader := "trap 'exit 0' TERM; while :; do sleep 1000 & wait; done"
			switch r.IntN(3) {
			case 0:
				leader = "exit 0"
			case 1:
				leader = "trap '' TERM; while :; do sleep 1000; done"
			}
			spec := sh(script+leader, s.args[0])
			spec.Mark += fmt.Sprint("_", n)
			spec.Env[1] += fmt.Sprint("_", n)
			p, lines := s.startLines(spec, count)
			s.check(p.Stop(syscall.SIGTERM))
			s.check(p.KillTree(s.ctx))
			if !p.TreeGone() {
				s.fail("seed %d, tree %d: it is not gone", seed, n)
			}
			for _, pid := range append(s.pids(lines), p.PID()) {
				if c := state(pid); c != 0 {
					s.fail("seed %d, tree %d: %d is in state %c, of %s", seed, n, pid, c, script+leader)
				}
			}
		}
		if state(neighbour.PID()) == 0 {
			s.fail("seed %d: the neighbour is dead", seed)
		}
		s.check(s.Close())
	}
}

// branch is a script that starts one to three processes in the background, each with
// a branch of its own below it; and how many numbers they say.
func branch(r *rand.Rand, depth int) (script string, count int) {
	if depth == 0 {
		return "", 0
	}
	var b strings.Builder
	for range 1 + r.IntN(4-depth) {
		below, n := branch(r, depth-1)
		count += 1 + n
		if r.IntN(2) == 0 {
			below = "trap '' TERM; " + below
		}
		end := "while :; do sleep 1000; done"
		switch r.IntN(4) {
		case 0:
			end = "kill -STOP $$; " + end
		case 1:
			end = "exit 0" // what is below it is an orphan
		}
		program := "sh -c " + quote(below+"echo $$; "+end)
		switch r.IntN(3) {
		case 0:
			program = "setsid " + program
		case 1:
			program = "(" + program + " &)" // a double fork
		}
		b.WriteString(program + " &\n")
	}
	return b.String(), count
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
