package config_test

// example has every key of the reference, those of one mode in an actor of it.
const example = `version: 1
data: .sovereign
defaults: {}
actors:
  db:
    command: postgres -D data
    mode: daemon
    ready: {tcp: "127.0.0.1:5432"}
  mail:
    command: [./mail]
    mode: worker
    restart: on-failure
    ready: {notify: true, timeout: 30s}
    watchdog: 30s
    claim: {ttl: 60s, renew: manual}
  resize:
    command: [./resize.sh, --fast]
    mode: task
    replicas: 2
    cwd: work
    env: {MODE: fast}
    user: nobody
    group: nogroup
    umask: "0077"
    limits: {nofile: 1024, memory: 512MiB, pids: 64}
    backoff: {initial: 200ms, max: 1m, factor: 1.5, jitter: 0}
    intensity: {restarts: 0, within: 2m}
    stop: {signal: INT, timeout: 0s}
    after: [db, mail]
    lease: {ttl: 15s}
    timeout: 1d12h
    retry: {max_attempts: 1, initial: 0s, max: 0s, factor: 1, jitter: 1}
    on_worker_lost: park
    inbox: {limit: 10, max_body: 4KiB}
    retention: {done: 1h, dead: 40d, events: 1d, done_count: 7, dead_count: 8, events_count: 9}
    workspace: {reclaim: on_success}
    result: {max_size: 2GiB}
    log: {file: false, max_size: 1GiB, keep: 0}
`

// allDefaults writes out what the reference says holds where nothing is given.
const allDefaults = `version: 1
data: .sovereign
defaults: {}
actors:
  t:
    command: x
    mode: task
    replicas: 1
    cwd: .
    backoff: {initial: 100ms, max: 30s, factor: 2, jitter: 0.2}
    intensity: {restarts: 5, within: 60s}
    stop: {signal: TERM, timeout: 10s}
    lease: {ttl: 30s}
    timeout: 10m
    retry: {max_attempts: 5, initial: 1s, max: 5m, factor: 2, jitter: 0.2}
    on_worker_lost: retry
    inbox: {limit: 100000, max_body: 1MiB}
    retention: {done: 24h, dead: 30d, events: 7d, done_count: 100000, dead_count: 100000, events_count: 1000000}
    workspace: {reclaim: always}
    result: {max_size: 1GiB}
    log: {file: true, max_size: 10MiB, keep: 3}
  w:
    command: x
    mode: worker
    restart: always
    ready: {notify: true, timeout: 30s}
    watchdog: 0s
    claim: {ttl: 60s, renew: auto}
`

// scalars look like other things than texts.
const scalars = `actors:
  a:
    command: [echo, 0123, no, 1e3]
    env: {PORT: 0123, A: no, T: 22:22, V: 1.10, X: 1e3, D: 2024-01-01, N: null, E: }
    user: 1000
`
