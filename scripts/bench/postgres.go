package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// postgres keeps the messages in a table, as those do who have a queue in their database:
// a claim takes the first one that is free and nobody has locked, for a minute, and
// counts its token up; who completes gives the token, and none other than the claim's
// deletes the message. All three are commits. A worker that finds nothing looks again:
// NOTIFY would be kinder to an idle server, but lets commits go one after another only.
// postgres refuses to run as root; there it runs as the user postgres, or else nobody.
type postgres struct {
	*daemon
}

// The table. The second index is for who brings back the claims that have run out.
const (
	pgTable = `create table if not exists msg(id bigserial primary key, recipient text not null, lease_until timestamptz,
		token bigint not null default 0, attempts int not null default 0, body bytea not null);
		create index if not exists ready on msg(recipient, id) where lease_until is null;
		create index if not exists claimed on msg(lease_until) where lease_until is not null`
	pgSend  = `insert into msg(recipient, body) values('` + recipient + `', $1)`
	pgClaim = `update msg set lease_until = now() + interval '1 min', token = token + 1, attempts = attempts + 1
		where id = (select id from msg where recipient = '` + recipient + `' and lease_until is null
			order by id for update skip locked limit 1)
		returning id, token, body`
	pgComplete = `delete from msg where id = $1 and token = $2`
)

// pgPause is how long a worker waits that found nothing, before it looks again.
const pgPause = time.Millisecond

// pgPrograms is the folder with initdb and postgres.
func pgPrograms() string {
	debian, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	var dirs []string
	if path, err := exec.LookPath("postgres"); err == nil {
		dirs = []string{filepath.Dir(path)}
	}
	for _, dir := range append(dirs, debian...) {
		_, noInit := exec.LookPath(filepath.Join(dir, "initdb"))
		_, noServer := exec.LookPath(filepath.Join(dir, "postgres"))
		if noInit == nil && noServer == nil {
			return dir
		}
	}
	return ""
}

func (b *bench) postgres() (broker, error) {
	dir, err := b.folder()
	if err != nil {
		return nil, err
	}
	as, err := b.createDatabase(dir)
	if err != nil {
		return nil, err
	}
	return b.startPostgres(dir, as, "on")
}

// createDatabase makes an empty one in dir. It returns whom the server is to run as.
func (b *bench) createDatabase(dir string) (*syscall.Credential, error) {
	as, err := pgUser()
	if err != nil {
		return nil, err
	}
	if as != nil { // who must come to its folder
		if err := errors.Join(os.Chmod(b.dir, 0o711), os.Chown(dir, int(as.Uid), int(as.Gid))); err != nil {
			return nil, err
		}
	}
	init := b.pgCommand(dir, as, "initdb", "-D", filepath.Join(dir, "data"), "-A", "trust", "-U", "bench", "-E", "UTF8", "--locale=C", "-N")
	if said, err := init.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, said)
	}
	return as, nil
}

// pgUser is whom the server runs as where we are root, which it refuses; nil elsewhere.
func pgUser() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		if u, err = user.Lookup("nobody"); err != nil {
			return nil, err
		}
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, err
}

func (b *bench) pgCommand(dir string, as *syscall.Credential, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(b.pgPrograms, name), args...)
	cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Credential: as}
	return cmd
}

// startPostgres starts it on the database in dir, with synchronous_commit on or off, and
// returns when it answers and has the table.
func (b *bench) startPostgres(dir string, as *syscall.Credential, commit string) (*postgres, error) {
	cmd := b.pgCommand(dir, as, "postgres", "-D", filepath.Join(dir, "data"), "-k", dir, "-c", "listen_addresses=",
		"-c", "fsync=on", "-c", "synchronous_commit="+commit, "-c", "max_connections=300",
		"-c", "shared_buffers=1GB", "-c", "max_wal_size=8GB", "-c", "jit=off")
	d, err := listening(&daemon{dir: dir, cmd: cmd, network: "unix", address: filepath.Join(dir, ".s.PGSQL.5432")})
	if err != nil {
		return nil, err
	}
	p := &postgres{d}
	c, err := p.ready()
	if err == nil {
		err = c.script(pgTable)
		c.close()
	}
	if err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return p, nil
}

// ready opens a connection as soon as the server takes one.
func (p *postgres) ready() (*pgClient, error) {
	for began := time.Now(); ; time.Sleep(2 * time.Millisecond) {
		c, err := p.open()
		if err == nil || !notYet(err) || time.Since(began) > limit {
			return c, err
		}
	}
}

// pids are the server's and those of its connections and helpers.
func (p *postgres) pids() []int { return tree(p.cmd.Process.Pid, nil) }

// stop has it end its connections and close its files.
func (p *postgres) stop() error {
	p.end(syscall.SIGINT)
	return nil
}

// kill ends all of its processes as nobody should.
func (p *postgres) kill() {
	all := p.pids()
	p.daemon.kill()
	for _, pid := range all[1:] {
		_ = syscall.Kill(pid, syscall.SIGKILL) // who saw its parent die may be gone
	}
	for _, pid := range all[1:] {
		for lives(pid) {
			time.Sleep(time.Millisecond)
		}
	}
}

// The statements that each connection prepares.
var pgStatements = map[string]string{"send": pgSend, "claim": pgClaim, "complete": pgComplete}

// size is how many bytes the table and its indexes take.
func (p *postgres) size() (float64, error) {
	c, err := p.open()
	if err != nil {
		return 0, err
	}
	defer c.close()
	if err := c.prepare("size", "select pg_total_relation_size('msg')"); err != nil {
		return 0, err
	}
	row, _, err := c.execute("size")
	if err != nil || len(row) != 1 {
		return 0, fmt.Errorf("PostgreSQL did not tell a size: %w", err)
	}
	return float64(bigint(row[0])), nil
}

func (p *postgres) client(int) (client, error) {
	c, err := p.open()
	if err != nil {
		return nil, err
	}
	for name, text := range pgStatements {
		if err := c.prepare(name, text); err != nil {
			c.close()
			return nil, err
		}
	}
	return c, nil
}

func (p *postgres) open() (*pgClient, error) {
	w, err := p.dial()
	if err != nil {
		return nil, err
	}
	c := &pgClient{wire: w}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	if err := c.begin("bench", "postgres"); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *pgClient) send(body []byte) error {
	_, n, err := c.execute("send", body)
	if err == nil && n != 1 {
		err = fmt.Errorf("PostgreSQL inserted %d messages", n)
	}
	return err
}

func (c *pgClient) claim() (job, error) {
	for {
		row, n, err := c.execute("claim")
		switch {
		case err != nil:
			return job{}, err
		case n == 1 && len(row) == 3:
			return job{id: string(row[0]), token: bigint(row[1])}, nil
		case n != 0:
			return job{}, fmt.Errorf("PostgreSQL claimed %d messages, with %d columns", n, len(row))
		}
		if err := rest(c.ctx, pgPause); err != nil {
			return job{}, err
		}
	}
}

func (c *pgClient) complete(j job) error {
	_, n, err := c.execute("complete", []byte(j.id), asBigint(j.token))
	if err == nil && n != 1 {
		err = fmt.Errorf("PostgreSQL: message %x is not held with token %d", j.id, j.token)
	}
	return err
}

// next has no form of its own: the worker claims with the next request.
func (c *pgClient) next(j job) (job, bool, error) { return job{}, false, c.complete(j) }

func (c *pgClient) close() {
	c.cancel()
	c.wire.close()
}
