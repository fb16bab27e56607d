package config_test

import (
	"strings"
	"testing"

	"github.com/sovereign-run/sovereign/config"
)

// Every kind of problem, with its place and its exact text. A check that is
// removed, a position that slips or a text that changes fails its line.
//
// J5: duplicate and misspelt keys. J3: an unclosed quote.
func TestParse_SaysWhatIsWrongAndWhere(t *testing.T) {
	for _, c := range problemCases {
		t.Run(c.name, func(t *testing.T) {
			file, err := config.Parse("actors.yaml", []byte(c.text))
			if err == nil {
				t.Fatalf("accepted: %+v", file)
			}
			want := strings.ReplaceAll(c.want, "HERE", mustGetwd(t))
			if got := err.Error(); got != want {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

var problemCases = []struct{ name, text, want string }{
	{
		name: "unknown key, a slip",
		text: `actors:
  a:
    comand: x
`,
		want: `actors.yaml:3:5: unknown key "comand", did you mean command?`,
	},
	{
		name: "unknown key, another's word",
		text: `actors:
  a:
    command: x
    depends_on: [b]
`,
		want: `actors.yaml:4:5: unknown key "depends_on", did you mean after?`,
	},
	{
		name: "unknown key, one level too high",
		text: `actors:
  a:
    command: x
    max_attempts: 3
`,
		want: `actors.yaml:4:5: unknown key "max_attempts", did you mean retry.max_attempts?`,
	},
	{
		name: "unknown key, two places one level down",
		text: `actors:
  a:
    command: x
    ttl: 3s
`,
		want: `actors.yaml:4:5: unknown key "ttl", did you mean lease.ttl or claim.ttl?`,
	},
	{
		name: "unknown key of the file",
		text: `actors:
  a: {command: x}
environment: 1
`,
		want: `actors.yaml:3:1: unknown key "environment", allowed: version, data, defaults, actors`,
	},
	{
		name: "unknown nested key",
		text: `actors:
  a:
    command: x
    retry: {tries: 3}
`,
		want: `actors.yaml:4:13: unknown key "tries" in retry, allowed: max_attempts, initial, max, factor, jitter`,
	},
	{
		name: "unknown key in defaults",
		text: `defaults:
  comand: x
actors:
  a: {command: x}
`,
		want: `actors.yaml:2:3: unknown key "comand" in defaults, did you mean command?`,
	},
	{
		name: "key given twice",
		text: `actors:
  a:
    command: x
    command: y
`,
		want: `actors.yaml:4:5: "command" is given twice, first in line 3, allowed: once`,
	},
	{
		name: "actor given twice",
		text: `actors:
  a: {command: x}
  a: {command: y}
`,
		want: `actors.yaml:3:3: "a" is given twice, first in line 2, allowed: once`,
	},
	{
		name: "variable given twice",
		text: `actors:
  a: {command: x, env: {A: 1, A: 1}}
`,
		want: `actors.yaml:2:31: "A" is given twice, first in line 2, allowed: once`,
	},
	{
		name: "key of the file given twice",
		text: `version: 1
version: 1
actors: {a: {command: x}}
`,
		want: `actors.yaml:2:1: "version" is given twice, first in line 1, allowed: once`,
	},
	{
		name: "a key that is a list",
		text: `actors:
  a:
    command: x
    ? [b]
    : c
`,
		want: `actors.yaml:4:7: a key is a list, allowed: a word`,
	},
	{
		name: "file is a list",
		text: "- a\n",
		want: `actors.yaml:1:1: the file is a list, allowed: a mapping of version, data, defaults and actors`,
	},
	{
		name: "file is a text",
		text: "actors\n",
		want: `actors.yaml:1:1: the file is a single value, allowed: a mapping of version, data, defaults and actors`,
	},
	{
		name: "no actors",
		text: "version: 1\n",
		want: `actors.yaml:1:1: there is no actors, allowed: a mapping with at least one actor`,
	},
	{
		name: "actors without value",
		text: "actors:\n",
		want: `actors.yaml:1:8: actors has no value, allowed: a mapping with at least one actor`,
	},
	{
		name: "actors empty",
		text: "actors: {}\n",
		want: `actors.yaml:1:9: actors is empty, allowed: a mapping with at least one actor`,
	},
	{
		name: "actors a list",
		text: "actors: [a]\n",
		want: `actors.yaml:1:9: actors is a list, allowed: a mapping with at least one actor`,
	},
	{
		name: "actor a text",
		text: `actors:
  a: ./x
`,
		want: `actors.yaml:2:6: actor a is a single value, allowed: a mapping with at least command`,
	},
	{
		name: "actor without value",
		text: `actors:
  a:
`,
		want: `actors.yaml:2:5: actor a has no value, allowed: a mapping with at least command`,
	},
	{
		name: "version",
		text: `version: 2
actors: {a: {command: x}}
`,
		want: `actors.yaml:1:10: version: "2" is not supported, allowed: 1`,
	},
	{
		name: "data empty",
		text: `data: ""
actors: {a: {command: x}}
`,
		want: `actors.yaml:1:7: data: "" is empty, allowed: the path of a folder`,
	},
	{
		name: "data without value",
		text: `data:
actors: {a: {command: x}}
`,
		want: `actors.yaml:1:6: data has no value, allowed: the path of a folder`,
	},
	{
		name: "data NUL",
		text: `data: "a\0b"
actors: {a: {command: x}}
`,
		want: `actors.yaml:1:7: data: "a\x00b" holds a NUL character, allowed: the path of a folder`,
	},
	{
		name: "defaults a list",
		text: `defaults: []
actors: {a: {command: x}}
`,
		want: `actors.yaml:1:11: defaults is a list, allowed: a mapping of command, mode, replicas, cwd, env, env_file, user, group, umask, limits, restart, backoff, intensity, stop, ready, watchdog, after, lease, timeout, progress_timeout, claim, retry, on_worker_lost, inbox, retention, workspace, result and log`,
	},
	{
		name: "bad name, capital",
		text: `actors:
  Resize: {command: x}
`,
		want: `actors.yaml:2:3: bad name "Resize" of an actor, allowed: 1 to 63 of a-z, 0-9, dot, underscore and dash, not beginning with a sign`,
	},
	{
		name: "bad name, dash first",
		text: `actors:
  -a: {command: x}
`,
		want: `actors.yaml:2:3: bad name "-a" of an actor, allowed: 1 to 63 of a-z, 0-9, dot, underscore and dash, not beginning with a sign`,
	},
	{
		name: "bad name, empty",
		text: `actors:
  "": {command: x}
`,
		want: `actors.yaml:2:3: bad name "" of an actor, allowed: 1 to 63 of a-z, 0-9, dot, underscore and dash, not beginning with a sign`,
	},
	{
		name: "bad name, too long",
		text: `actors:
  aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa: {command: x}
`,
		want: `actors.yaml:2:3: bad name "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"… of an actor, allowed: 1 to 63 of a-z, 0-9, dot, underscore and dash, not beginning with a sign`,
	},
	{
		name: "no command",
		text: `actors:
  a: {mode: task}
`,
		want: `actors.yaml:2:3: actor a has no command, allowed: a list of a program and its arguments, or a text for /bin/sh -c`,
	},
	{
		name: "command empty list",
		text: `actors:
  a: {command: []}
`,
		want: `actors.yaml:2:16: command is empty, allowed: a list of a program and its arguments, or a text for /bin/sh -c`,
	},
	{
		name: "command empty text",
		text: `actors:
  a: {command: ""}
`,
		want: `actors.yaml:2:16: command is empty, allowed: a list of a program and its arguments, or a text for /bin/sh -c`,
	},
	{
		name: "command blank text",
		text: `actors:
  a: {command: "  "}
`,
		want: `actors.yaml:2:16: command is empty, allowed: a list of a program and its arguments, or a text for /bin/sh -c`,
	},
	{
		name: "command without value",
		text: `actors:
  a:
    command:
`,
		want: `actors.yaml:3:13: command has no value, allowed: a list of a program and its arguments, or a text for /bin/sh -c`,
	},
	{
		name: "command a mapping",
		text: `actors:
  a: {command: {sh: x}}
`,
		want: `actors.yaml:2:16: command is a mapping, allowed: a list of a program and its arguments, or a text for /bin/sh -c`,
	},
	{
		name: "command with an empty program",
		text: `actors:
  a: {command: ["", x]}
`,
		want: `actors.yaml:2:17: the program of command has no value, allowed: a text; an empty argument is ""`,
	},
	{
		name: "command with an argument left out",
		text: `actors:
  a:
    command:
      - x
      -
`,
		want: `actors.yaml:5:8: an argument of command has no value, allowed: a text; an empty argument is ""`,
	},
	{
		name: "command with a list inside",
		text: `actors:
  a: {command: [x, [y]]}
`,
		want: `actors.yaml:2:20: an argument of command is a list, allowed: a text`,
	},
	{
		name: "command NUL",
		text: `actors:
  a: {command: "a\0"}
`,
		want: `actors.yaml:2:16: command holds a NUL character, allowed: any other`,
	},
	{
		name: "command argument NUL",
		text: `actors:
  a: {command: [a, "b\0"]}
`,
		want: `actors.yaml:2:20: an argument of command holds a NUL character, allowed: any other`,
	},
	{
		name: "mode unknown",
		text: `actors:
  a: {command: x, mode: deamon}
`,
		want: `actors.yaml:2:25: mode: "deamon" is unknown, did you mean daemon? allowed: task, worker or daemon`,
	},
	{
		name: "mode unknown, far off",
		text: `actors:
  a: {command: x, mode: cron}
`,
		want: `actors.yaml:2:25: mode: "cron" is unknown, allowed: task, worker or daemon`,
	},
	{
		name: "replicas zero",
		text: `actors:
  a: {command: x, replicas: 0}
`,
		want: `actors.yaml:2:29: replicas: "0" is too small, allowed: a whole number from 1 to 1024`,
	},
	{
		name: "replicas negative",
		text: `actors:
  a: {command: x, replicas: -1}
`,
		want: `actors.yaml:2:29: replicas: "-1" is negative, allowed: a whole number from 1 to 1024`,
	},
	{
		name: "replicas too many",
		text: `actors:
  a: {command: x, replicas: 1025}
`,
		want: `actors.yaml:2:29: replicas: "1025" is too large, allowed: a whole number from 1 to 1024`,
	},
	{
		name: "replicas huge",
		text: `actors:
  a: {command: x, replicas: 99999999999999999999}
`,
		want: `actors.yaml:2:29: replicas: "99999999999999999999" is too large, allowed: a whole number from 1 to 1024`,
	},
	{
		name: "replicas a text",
		text: `actors:
  a: {command: x, replicas: many}
`,
		want: `actors.yaml:2:29: replicas: "many" is no whole number, allowed: a whole number from 1 to 1024`,
	},
	{
		name: "replicas in quotes",
		text: `actors:
  a: {command: x, replicas: "2"}
`,
		want: `actors.yaml:2:29: replicas: "2" is a text in quotes, allowed: a whole number from 1 to 1024`,
	},
	{
		name: "replicas octal",
		text: `actors:
  a: {command: x, replicas: 010}
`,
		want: `actors.yaml:2:29: replicas: "010" is no whole number, allowed: a whole number from 1 to 1024`,
	},
	{
		name: "replicas a fraction",
		text: `actors:
  a: {command: x, replicas: 1.5}
`,
		want: `actors.yaml:2:29: replicas: "1.5" is no whole number, allowed: a whole number from 1 to 1024`,
	},
	{
		name: "replicas a list",
		text: `actors:
  a: {command: x, replicas: [1]}
`,
		want: `actors.yaml:2:29: replicas is a list, allowed: a whole number from 1 to 1024`,
	},
	{
		name: "cwd empty",
		text: `actors:
  a: {command: x, cwd: ""}
`,
		want: `actors.yaml:2:24: cwd: "" is empty, allowed: the path of a folder`,
	},
	{
		name: "cwd null",
		text: `actors:
  a: {command: x, cwd: ~}
`,
		want: `actors.yaml:2:24: cwd has no value, allowed: the path of a folder`,
	},
	{
		name: "env a list",
		text: `actors:
  a: {command: x, env: [A=1]}
`,
		want: `actors.yaml:2:24: env is a list, allowed: a mapping of names to texts`,
	},
	{
		name: "env name with a dash",
		text: `actors:
  a: {command: x, env: {A-B: 1}}
`,
		want: `actors.yaml:2:25: the name "A-B" is no name of a variable, allowed: letters, digits and _, not beginning with a digit`,
	},
	{
		name: "env name with =",
		text: `actors:
  a: {command: x, env: {"A=B": 1}}
`,
		want: `actors.yaml:2:25: the name "A=B" is no name of a variable, allowed: letters, digits and _, not beginning with a digit`,
	},
	{
		name: "env name empty",
		text: `actors:
  a: {command: x, env: {"": 1}}
`,
		want: `actors.yaml:2:25: the name "" is no name of a variable, allowed: letters, digits and _, not beginning with a digit`,
	},
	{
		name: "env name of ours",
		text: `actors:
  a: {command: x, env: {SOVEREIGN_SLOT: 1}}
`,
		want: `actors.yaml:2:25: the name "SOVEREIGN_SLOT" is one of the supervisor's own, allowed: names that do not begin with SOVEREIGN_`,
	},
	{
		name: "env value a list",
		text: `actors:
  a: {command: x, env: {A: [1]}}
`,
		want: `actors.yaml:2:28: env.A is a list, allowed: a text`,
	},
	{
		name: "env value NUL",
		text: `actors:
  a: {command: x, env: {A: "\0"}}
`,
		want: `actors.yaml:2:28: env.A holds a NUL character, allowed: any other`,
	},
	{
		name: "a text that would break the line",
		text: `actors:
  a: {command: x, env: {"A\n\e[1mB": [1]}}
`,
		want: `actors.yaml:2:25: the name "A\n\x1b[1mB" is no name of a variable, allowed: letters, digits and _, not beginning with a digit` + "\n" +
			`actors.yaml:2:38: env.A\n\x1b[1mB is a list, allowed: a text`,
	},
	{
		name: "key in no letters",
		text: `actors:
  a: {command: x, ? [~]: 1, "": 2}
`,
		want: `actors.yaml:2:21: a key is a list, allowed: a word` + "\n" +
			`actors.yaml:2:29: unknown key "", allowed: command, mode, replicas, cwd, env, env_file, user, group, umask, limits, restart, backoff, intensity, stop, ready, watchdog, after, lease, timeout, progress_timeout, claim, retry, on_worker_lost, inbox, retention, workspace, result, log`,
	},
	{
		name: "alias as a key",
		text: `actors:
  a: {command: &x x, *x : 1}
`,
		want: `actors.yaml:2:16: anchor &x is not allowed, write the value out where it is needed` + "\n" +
			`actors.yaml:2:22: alias *x is not allowed, write the value out`,
	},
	{
		name: "a slip in a key of another mode",
		text: `actors:
  a: {command: x, watchdg: 1s}
`,
		want: `actors.yaml:2:19: unknown key "watchdg", did you mean watchdog?`,
	},
	{
		name: "a bad bound is not compared with",
		text: `actors:
  a: {command: x, backoff: {initial: 1h, max: 5}}
`,
		want: `actors.yaml:2:47: backoff.max: "5" has no unit, allowed: a duration longer than zero with its unit, such as 100ms, 30s, 10m or 30d`,
	},
	{
		name: "key of an actor in the file",
		text: `retry: {}
actors: {a: {command: x}}
`,
		want: `actors.yaml:1:1: unknown key "retry", did you mean defaults.retry?`,
	},
	{
		name: "short word near a short key",
		text: `actors:
  a: {command: x, retention: {elf: 1}, log: {fyla: 1}}
`,
		want: `actors.yaml:2:31: unknown key "elf" in retention, allowed: done, dead, events, done_count, dead_count, events_count` + "\n" +
			`actors.yaml:2:46: unknown key "fyla" in log, allowed: file, max_size, keep`,
	},
	{
		name: "env_file missing",
		text: `actors:
  a: {command: x, env_file: nowhere.env}
`,
		want: `actors.yaml:2:29: env_file HERE/nowhere.env: there is no such file`,
	},
	{
		name: "user empty",
		text: `actors:
  a: {command: x, user: ""}
`,
		want: `actors.yaml:2:25: user: "" is empty, allowed: the name or the number of a user`,
	},
	{
		name: "user and group in one",
		text: `actors:
  a: {command: x, user: "nobody:nogroup"}
`,
		want: `actors.yaml:2:25: user: "nobody:nogroup" is no name of a user, allowed: the name or the number of a user`,
	},
	{
		name: "umask decimal",
		text: `actors:
  a: {command: x, umask: 0899}
`,
		want: `actors.yaml:2:26: umask: "0899" is no octal mask, allowed: three or four octal digits from "000" to "0777"`,
	},
	{
		name: "umask beyond",
		text: `actors:
  a: {command: x, umask: "7777"}
`,
		want: `actors.yaml:2:26: umask: "7777" is beyond 0777, allowed: three or four octal digits from "000" to "0777"`,
	},
	{
		name: "umask short",
		text: `actors:
  a: {command: x, umask: 77}
`,
		want: `actors.yaml:2:26: umask: "77" is no octal mask, allowed: three or four octal digits from "000" to "0777"`,
	},
	{
		name: "limits a number",
		text: `actors:
  a: {command: x, limits: 5}
`,
		want: `actors.yaml:2:27: limits is a single value, allowed: a mapping of nofile, memory and pids`,
	},
	{
		name: "limits zero",
		text: `actors:
  a: {command: x, limits: {nofile: 0, memory: 0B, pids: 0}}
`,
		want: `actors.yaml:2:36: limits.nofile: "0" is too small, allowed: a whole number from 1 to 1073741824` + "\n" +
			`actors.yaml:2:47: limits.memory: "0B" is too small, allowed: a size above zero in B, KiB, MiB or GiB, such as 512MiB` + "\n" +
			`actors.yaml:2:57: limits.pids: "0" is too small, allowed: a whole number from 1 to 4194304`,
	},
	{
		name: "size without unit",
		text: `actors:
  a: {command: x, limits: {memory: 512}}
`,
		want: `actors.yaml:2:36: limits.memory: "512" has no unit, allowed: a size above zero in B, KiB, MiB or GiB, such as 512MiB`,
	},
	{
		name: "size in MB",
		text: `actors:
  a: {command: x, limits: {memory: 512MB}}
`,
		want: `actors.yaml:2:36: limits.memory: "512MB" has the unit MB, did you mean 512MiB? allowed: a size above zero in B, KiB, MiB or GiB, such as 512MiB`,
	},
	{
		name: "size in M",
		text: `actors:
  a: {command: x, limits: {memory: 512M}}
`,
		want: `actors.yaml:2:36: limits.memory: "512M" has the unit M, did you mean 512MiB? allowed: a size above zero in B, KiB, MiB or GiB, such as 512MiB`,
	},
	{
		name: "size a fraction",
		text: `actors:
  a: {command: x, limits: {memory: 1.5GiB}}
`,
		want: `actors.yaml:2:36: limits.memory: "1.5GiB" is no whole number, allowed: a size above zero in B, KiB, MiB or GiB, such as 512MiB`,
	},
	{
		name: "size negative",
		text: `actors:
  a: {command: x, limits: {memory: -1MiB}}
`,
		want: `actors.yaml:2:36: limits.memory: "-1MiB" is negative, allowed: a size above zero in B, KiB, MiB or GiB, such as 512MiB`,
	},
	{
		name: "size too large",
		text: `actors:
  a: {command: x, limits: {memory: 9999999999999GiB}}
`,
		want: `actors.yaml:2:36: limits.memory: "9999999999999GiB" is too large, allowed: a size above zero in B, KiB, MiB or GiB, such as 512MiB`,
	},
	{
		name: "size no size",
		text: `actors:
  a: {command: x, limits: {memory: lots}}
`,
		want: `actors.yaml:2:36: limits.memory: "lots" is no size, allowed: a size above zero in B, KiB, MiB or GiB, such as 512MiB`,
	},
	{
		name: "restart unknown",
		text: `actors:
  a: {command: x, mode: daemon, restart: on_failure}
`,
		want: `actors.yaml:2:42: restart: "on_failure" is unknown, did you mean on-failure? allowed: always, on-failure or never`,
	},
	{
		name: "restart yes",
		text: `actors:
  a: {command: x, mode: daemon, restart: no}
`,
		want: `actors.yaml:2:42: restart: "no" is unknown, did you mean never? allowed: always, on-failure or never`,
	},
	{
		name: "duration without unit",
		text: `actors:
  a: {command: x, timeout: 30}
`,
		want: `actors.yaml:2:28: timeout: "30" has no unit, allowed: a duration longer than zero with its unit, such as 100ms, 30s, 10m or 30d`,
	},
	{
		name: "duration negative",
		text: `actors:
  a: {command: x, timeout: -30s}
`,
		want: `actors.yaml:2:28: timeout: "-30s" is negative, allowed: a duration longer than zero with its unit, such as 100ms, 30s, 10m or 30d`,
	},
	{
		name: "duration zero",
		text: `actors:
  a: {command: x, timeout: 0s}
`,
		want: `actors.yaml:2:28: timeout: "0s" is too short, allowed: a duration longer than zero with its unit, such as 100ms, 30s, 10m or 30d`,
	},
	{
		name: "duration unknown unit",
		text: `actors:
  a: {command: x, timeout: 3w}
`,
		want: `actors.yaml:2:28: timeout: "3w" is no duration, allowed: a duration longer than zero with its unit, such as 100ms, 30s, 10m or 30d`,
	},
	{
		name: "duration days last",
		text: `actors:
  a: {command: x, timeout: 1h1d}
`,
		want: `actors.yaml:2:28: timeout: "1h1d" is no duration, allowed: a duration longer than zero with its unit, such as 100ms, 30s, 10m or 30d`,
	},
	{
		name: "duration too long",
		text: `actors:
  a: {command: x, timeout: 999999d}
`,
		want: `actors.yaml:2:28: timeout: "999999d" is too long, allowed: a duration longer than zero with its unit, such as 100ms, 30s, 10m or 30d`,
	},
	{
		name: "duration empty",
		text: `actors:
  a: {command: x, timeout: ""}
`,
		want: `actors.yaml:2:28: timeout: "" is no duration, allowed: a duration longer than zero with its unit, such as 100ms, 30s, 10m or 30d`,
	},
	{
		name: "lease too short",
		text: `actors:
  a: {command: x, lease: {ttl: 1ms}}
`,
		want: `actors.yaml:2:32: lease.ttl: "1ms" is too short, allowed: a duration of at least 100ms with its unit, such as 30s, 10m or 30d`,
	},
	{
		name: "factor below one",
		text: `actors:
  a: {command: x, backoff: {factor: 0.5}}
`,
		want: `actors.yaml:2:37: backoff.factor: "0.5" is too small, allowed: a number from 1 to 1000`,
	},
	{
		name: "factor infinite",
		text: `actors:
  a: {command: x, backoff: {factor: .inf}}
`,
		want: `actors.yaml:2:37: backoff.factor: ".inf" is no number, allowed: a number from 1 to 1000`,
	},
	{
		name: "factor in quotes",
		text: `actors:
  a: {command: x, backoff: {factor: "2"}}
`,
		want: `actors.yaml:2:37: backoff.factor: "2" is a text in quotes, allowed: a number from 1 to 1000`,
	},
	{
		name: "jitter above one",
		text: `actors:
  a: {command: x, backoff: {jitter: 1.5}}
`,
		want: `actors.yaml:2:37: backoff.jitter: "1.5" is too large, allowed: a number from 0 to 1`,
	},
	{
		name: "jitter negative",
		text: `actors:
  a: {command: x, backoff: {jitter: -0.1}}
`,
		want: `actors.yaml:2:37: backoff.jitter: "-0.1" is negative, allowed: a number from 0 to 1`,
	},
	{
		name: "max below initial",
		text: `actors:
  a:
    command: x
    backoff:
      initial: 10s
      max: 1s
`,
		want: `actors.yaml:6:12: backoff.max 1s is shorter than backoff.initial 10s, allowed: at least as long`,
	},
	{
		name: "initial above the default max",
		text: `actors:
  a: {command: x, retry: {initial: 1h}}
`,
		want: `actors.yaml:2:36: retry.max 5m is shorter than retry.initial 1h, allowed: at least as long`,
	},
	{
		name: "initial above the max of defaults",
		text: `defaults:
  retry: {max: 2s}
actors:
  a: {command: x}
  b: {command: x, retry: {initial: 3s}}
`,
		want: `actors.yaml:5:36: retry.max 2s is shorter than retry.initial 3s, allowed: at least as long`,
	},
	{
		name: "backoff of zero",
		text: `actors:
  a: {command: x, backoff: {initial: 0s}}
`,
		want: `actors.yaml:2:38: backoff.initial: "0s" is too short, allowed: a duration longer than zero with its unit, such as 100ms, 30s, 10m or 30d`,
	},
	{
		name: "intensity negative",
		text: `actors:
  a: {command: x, intensity: {restarts: -1, within: 0s}}
`,
		want: `actors.yaml:2:41: intensity.restarts: "-1" is negative, allowed: a whole number from 0 to 1000000` + "\n" +
			`actors.yaml:2:53: intensity.within: "0s" is too short, allowed: a duration longer than zero with its unit, such as 100ms, 30s, 10m or 30d`,
	},
	{
		name: "signal unknown",
		text: `actors:
  a: {command: x, stop: {signal: FOO}}
`,
		want: `actors.yaml:2:34: stop.signal: "FOO" is unknown, allowed: TERM, INT, QUIT, HUP, KILL, USR1, USR2, WINCH, ABRT or ALRM`,
	},
	{
		name: "signal with SIG",
		text: `actors:
  a: {command: x, stop: {signal: SIGTERM}}
`,
		want: `actors.yaml:2:34: stop.signal: "SIGTERM" is unknown, did you mean TERM? allowed: TERM, INT, QUIT, HUP, KILL, USR1, USR2, WINCH, ABRT or ALRM`,
	},
	{
		name: "signal that does not end",
		text: `actors:
  a: {command: x, stop: {signal: STOP}}
`,
		want: `actors.yaml:2:34: stop.signal: "STOP" is unknown, allowed: TERM, INT, QUIT, HUP, KILL, USR1, USR2, WINCH, ABRT or ALRM`,
	},
	{
		name: "signal by number",
		text: `actors:
  a: {command: x, stop: {signal: 15}}
`,
		want: `actors.yaml:2:34: stop.signal: "15" is unknown, did you mean TERM? allowed: TERM, INT, QUIT, HUP, KILL, USR1, USR2, WINCH, ABRT or ALRM`,
	},
	{
		name: "ready without method",
		text: `actors:
  a: {command: x, mode: daemon, ready: {timeout: 1s}}
`,
		want: `actors.yaml:2:33: ready says not how, allowed: exactly one of notify, exec, tcp and http`,
	},
	{
		name: "ready with two methods",
		text: `actors:
  a: {command: x, mode: daemon, ready: {tcp: "h:1", notify: true}}
`,
		want: `actors.yaml:2:53: ready has notify and tcp, allowed: exactly one of notify, exec, tcp and http`,
	},
	{
		name: "ready by not notifying",
		text: `actors:
  a: {command: x, mode: daemon, ready: {notify: false}}
`,
		want: `actors.yaml:2:49: ready.notify: "false" says nothing, allowed: true`,
	},
	{
		name: "ready yes",
		text: `actors:
  a: {command: x, mode: daemon, ready: {notify: yes}}
`,
		want: `actors.yaml:2:49: ready.notify: "yes" is neither true nor false, allowed: true`,
	},
	{
		name: "ready tcp",
		text: `actors:
  a: {command: x, mode: daemon, ready: {tcp: "127.0.0.1"}}
`,
		want: `actors.yaml:2:46: ready.tcp: "127.0.0.1" is no host:port, allowed: host:port`,
	},
	{
		name: "ready tcp port",
		text: `actors:
  a: {command: x, mode: daemon, ready: {tcp: "127.0.0.1:http"}}
`,
		want: `actors.yaml:2:46: ready.tcp: "127.0.0.1:http" has no port from 1 to 65535, allowed: host:port`,
	},
	{
		name: "ready tcp host",
		text: `actors:
  a: {command: x, mode: daemon, ready: {tcp: ":80"}}
`,
		want: `actors.yaml:2:46: ready.tcp: ":80" has no host, allowed: host:port`,
	},
	{
		name: "ready http",
		text: `actors:
  a: {command: x, mode: daemon, ready: {http: "ftp://x/"}}
`,
		want: `actors.yaml:2:47: ready.http: "ftp://x/" is no URL of http or https, allowed: a URL of http or https`,
	},
	{
		name: "ready exec empty",
		text: `actors:
  a: {command: x, mode: daemon, ready: {exec: []}}
`,
		want: `actors.yaml:2:47: ready.exec is empty, allowed: a list of a program and its arguments, or a text for /bin/sh -c`,
	},
	{
		name: "renew unknown",
		text: `actors:
  a: {command: x, mode: worker, claim: {renew: never}}
`,
		want: `actors.yaml:2:48: claim.renew: "never" is unknown, allowed: auto or manual`,
	},
	{
		name: "max_attempts zero",
		text: `actors:
  a: {command: x, retry: {max_attempts: 0}}
`,
		want: `actors.yaml:2:41: retry.max_attempts: "0" is too small, allowed: a whole number from 1 to 1000000`,
	},
	{
		name: "on_worker_lost unknown",
		text: `actors:
  a: {command: x, on_worker_lost: drop}
`,
		want: `actors.yaml:2:35: on_worker_lost: "drop" is unknown, allowed: retry or park`,
	},
	{
		name: "inbox of zero",
		text: `actors:
  a: {command: x, inbox: {limit: 0, max_body: 0B}}
`,
		want: `actors.yaml:2:34: inbox.limit: "0" is too small, allowed: a whole number from 1 to 1099511627776` + "\n" +
			`actors.yaml:2:47: inbox.max_body: "0B" is too small, allowed: a size from 1B to 1MiB, which is as much as one transaction of the store carries`,
	},
	{
		name: "body beyond a transaction",
		text: `actors:
  a: {command: x, inbox: {max_body: 2MiB}}
`,
		want: `actors.yaml:2:37: inbox.max_body: "2MiB" is too large, allowed: a size from 1B to 1MiB, which is as much as one transaction of the store carries`,
	},
	{
		name: "retention of zero",
		text: `actors:
  a: {command: x, retention: {done: 0s}}
`,
		want: `actors.yaml:2:37: retention.done: "0s" is too short, allowed: a duration longer than zero with its unit, such as 100ms, 30s, 10m or 30d`,
	},
	{
		name: "reclaim unknown",
		text: `actors:
  a: {command: x, workspace: {reclaim: on-success}}
`,
		want: `actors.yaml:2:40: workspace.reclaim: "on-success" is unknown, did you mean on_success? allowed: always, on_success or never`,
	},
	{
		name: "log",
		text: `actors:
  a: {command: x, log: {file: 1, max_size: 0B, keep: -1}}
`,
		want: `actors.yaml:2:31: log.file: "1" is neither true nor false, allowed: true or false` + "\n" +
			`actors.yaml:2:44: log.max_size: "0B" is too small, allowed: a size above zero in B, KiB, MiB or GiB, such as 512MiB` + "\n" +
			`actors.yaml:2:54: log.keep: "-1" is negative, allowed: a whole number from 0 to 1000`,
	},
	{
		name: "task with keys of others",
		text: `actors:
  a:
    command: x
    restart: never
    ready: {notify: true}
    watchdog: 1s
    claim: {ttl: 1s}
`,
		want: `actors.yaml:4:5: restart makes no sense in mode task, allowed: in mode worker or daemon` + "\n" +
			`actors.yaml:5:5: ready makes no sense in mode task, allowed: in mode worker or daemon` + "\n" +
			`actors.yaml:6:5: watchdog makes no sense in mode task, allowed: in mode worker or daemon` + "\n" +
			`actors.yaml:7:5: claim makes no sense in mode task, allowed: in mode worker`,
	},
	{
		name: "worker with keys of a task",
		text: `actors:
  a:
    command: x
    mode: worker
    workspace: {reclaim: never}
`,
		want: `actors.yaml:5:5: workspace makes no sense in mode worker, allowed: in mode task`,
	},
	{
		name: "daemon with keys of a mailbox",
		text: `actors:
  a:
    command: x
    mode: daemon
    watchdog: 1s
    timeout: 1s
    claim: {ttl: 1s}
    retry: {max_attempts: 1}
    on_worker_lost: park
    inbox: {limit: 1}
    retention: {done: 1s, events: 1s}
    workspace: {reclaim: never}
`,
		want: `actors.yaml:5:5: watchdog kills a daemon that cannot show a sign of life, allowed: with ready: {notify: true}, by which it can` + "\n" +
			`actors.yaml:6:5: timeout makes no sense in mode daemon, allowed: in mode task or worker` + "\n" +
			`actors.yaml:7:5: claim makes no sense in mode daemon, allowed: in mode worker` + "\n" +
			`actors.yaml:8:5: retry makes no sense in mode daemon, allowed: in mode task or worker` + "\n" +
			`actors.yaml:9:5: on_worker_lost makes no sense in mode daemon, allowed: in mode task or worker` + "\n" +
			`actors.yaml:10:5: inbox makes no sense in mode daemon, allowed: in mode task or worker` + "\n" +
			`actors.yaml:11:17: retention.done makes no sense in mode daemon, allowed: in mode task or worker` + "\n" +
			`actors.yaml:12:5: workspace makes no sense in mode daemon, allowed: in mode task`,
	},
	{
		name: "after a text",
		text: `actors:
  a: {command: x, after: b}
  b: {command: x}
`,
		want: `actors.yaml:2:26: after is a single value, allowed: a list of actors' names`,
	},
	{
		name: "after an unknown actor",
		text: `actors:
  a: {command: x, after: [worker-2]}
  worker-1: {command: x}
`,
		want: `actors.yaml:2:27: after names the unknown actor "worker-2", did you mean "worker-1"?`,
	},
	{
		name: "after an actor far off",
		text: `actors:
  a: {command: x, after: [database]}
`,
		want: `actors.yaml:2:27: after names the unknown actor "database", allowed: a`,
	},
	{
		name: "after the same twice",
		text: `actors:
  a: {command: x, after: [b, b]}
  b: {command: x}
`,
		want: `actors.yaml:2:30: after names "b" twice, allowed: once`,
	},
	{
		name: "after a list",
		text: `actors:
  a: {command: x, after: [[b]]}
  b: {command: x}
`,
		want: `actors.yaml:2:27: an entry of after is a list, allowed: the name of an actor`,
	},
	{
		name: "after itself",
		text: `actors:
  a: {command: x, after: [a]}
`,
		want: `actors.yaml:2:27: after goes in a circle: a after a, allowed: an order in which one can start first`,
	},
	{
		name: "after in a circle",
		text: `actors:
  z: {command: x, after: [a]}
  a: {command: x, after: [b]}
  b:
    command: x
    after:
      - c
  c: {command: x, after: [a]}
`,
		want: `actors.yaml:3:27: after goes in a circle: a after b after c after a, allowed: an order in which one can start first`,
	},
	{
		name: "after in two circles",
		text: `actors:
  a: {command: x, after: [b]}
  b: {command: x, after: [a]}
  c: {command: x, after: [d]}
  d: {command: x, after: [c]}
`,
		want: `actors.yaml:2:27: after goes in a circle: a after b after a, allowed: an order in which one can start first` + "\n" +
			`actors.yaml:4:27: after goes in a circle: c after d after c, allowed: an order in which one can start first`,
	},
	{
		name: "after in a circle by defaults",
		text: `defaults: {after: [a, b]}
actors:
  a: {command: x}
  b: {command: x}
`,
		want: `actors.yaml:1:23: after goes in a circle: a after b after a, allowed: an order in which one can start first`,
	},
	{
		name: "anchor and alias",
		text: `actors:
  a: &base
    command: x
  b: *base
`,
		want: `actors.yaml:2:6: anchor &base is not allowed, write the value out where it is needed` + "\n" +
			`actors.yaml:4:6: alias *base is not allowed, write the value out`,
	},
	{
		name: "merge key",
		text: `defaults: &d {replicas: 2}
actors:
  a:
    <<: *d
    command: x
`,
		want: `actors.yaml:1:11: anchor &d is not allowed, write the value out where it is needed` + "\n" +
			`actors.yaml:4:5: merge key << is not allowed, use defaults or write the values out` + "\n" +
			`actors.yaml:4:9: alias *d is not allowed, write the value out`,
	},
	{
		name: "tag",
		text: `actors:
  a: {command: !!str x, replicas: !!int 2, env: {A: !secret b}}
`,
		want: `actors.yaml:2:16: tag !!str is not allowed, every value is read as what its key needs` + "\n" +
			`actors.yaml:2:35: tag !!int is not allowed, every value is read as what its key needs` + "\n" +
			`actors.yaml:2:53: tag !secret is not allowed, every value is read as what its key needs`,
	},
	{
		name: "non-specific tag",
		text: `actors:
  a: {command: ! x}
`,
		want: `actors.yaml:2:16: tag ! is not allowed, every value is read as what its key needs`,
	},
	{
		name: "alias under an unknown key",
		text: `x: &a [1]
y: {b: [*a]}
actors: {a: {command: x}}
`,
		want: `actors.yaml:1:1: unknown key "x", allowed: version, data, defaults, actors` + "\n" +
			`actors.yaml:1:4: anchor &a is not allowed, write the value out where it is needed` + "\n" +
			`actors.yaml:2:1: unknown key "y", allowed: version, data, defaults, actors` + "\n" +
			`actors.yaml:2:9: alias *a is not allowed, write the value out`,
	},
	{
		name: "further document",
		text: `actors: {a: {command: x}}
---
actors: {}
`,
		want: `actors.yaml:2:1: a further document begins here, allowed: one document`,
	},
	{
		name: "further empty document",
		text: `actors: {a: {command: x}}
...
---
`,
		want: `actors.yaml:3:1: a further document begins here, allowed: one document`,
	},
	{
		name: "alias of nothing",
		text: "actors: *a\n",
		want: `actors.yaml:1:9: alias *a is not allowed, write the value out`,
	},
	{
		name: "bad value in defaults once",
		text: `defaults:
  replicas: 0
actors:
  a: {command: x}
  b: {command: x}
`,
		want: `actors.yaml:2:13: defaults.replicas: "0" is too small, allowed: a whole number from 1 to 1024`,
	},
	{
		name: "empty",
		text: "",
		want: `actors.yaml:1:1: the file is empty, allowed: a mapping with at least one actor under actors`,
	},
	{
		name: "only a comment",
		text: "# nothing\n",
		want: `actors.yaml:1:1: the file is empty, allowed: a mapping with at least one actor under actors`,
	},
	{
		name: "only a document mark",
		text: "---\n",
		want: `actors.yaml:2:1: the file is empty, allowed: a mapping with at least one actor under actors`,
	},
	{
		name: "syntax: bracket",
		text: "actors: {a: {command: [x}}\n",
		want: `actors.yaml:1:25: YAML: while parsing a flow sequence, did not find expected ',' or ']'`,
	},
	{
		name: "syntax: quote not closed",
		text: `actors:
  a:
    command: sh -c "a"
    env: {A: "oops}
`,
		want: `actors.yaml:4:14: YAML: while scanning a quoted scalar, found unexpected end of stream; close the quote`,
	},
	{
		name: "syntax: tab",
		text: "actors:\n\ta: {command: x}\n",
		want: `actors.yaml:2:1: YAML: while scanning for the next token, found character that cannot start any token; indent with spaces`,
	},
	{
		name: "syntax: colon",
		text: `actors:
  a:
    command: echo a: b
`,
		want: `actors.yaml:3:20: YAML: mapping values are not allowed in this context; put quotes around a text that holds ": ", and indent keys of one mapping alike`,
	},
	{
		name: "syntax: indentation",
		text: `actors:
  a:
    command: x
   mode: task
`,
		want: `actors.yaml:4:4: YAML: while parsing a block mapping, did not find expected key; indent keys of one mapping alike`,
	},
	{
		name: "syntax: at sign",
		text: `actors:
  a: {command: @x}
`,
		want: "actors.yaml:2:16: YAML: while scanning for the next token, found character that cannot start any token; put quotes around a text that begins with @, ` or %",
	},
	{
		name: "syntax in a further document",
		text: `actors: {a: {comand: x}}
---
a: [
`,
		want: `actors.yaml:4:1: YAML: while parsing a flow node, did not find expected node content`,
	},
	{
		name: "NUL",
		text: "actors:\n  a: {command: \x00}\n",
		want: `actors.yaml:2:16: there is a NUL character, allowed: any other`,
	},
	{
		name: "escape character",
		text: "actors:\n  a: {command: é\x1b}\n",
		want: `actors.yaml:2:17: there is a control character '\x1b', allowed: text; in double quotes it can be written as an escape`,
	},
	{
		name: "UTF-16",
		text: "\xff\xfea\x00",
		want: `actors.yaml:1:1: the text is UTF-16, allowed: UTF-8`,
	},
	{
		name: "Latin-1",
		text: "actors:\x0d\x0a  caf\xe9: {command: x}\x0a",
		want: `actors.yaml:2:6: byte 0xe9 is no UTF-8, allowed: text in UTF-8`,
	},
	{
		name: "byte order mark inside",
		text: "actors:\n  a: {command: x\ufeff}\n",
		want: `actors.yaml:2:17: there is a byte order mark, allowed: at the start of the file only`,
	},
}
