package config_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sovereign-run/sovereign/config"
)

// L8: the names of variables are shown, their values are not. J10: paths are
// absolute.
func TestDescribe_ShowsPathsAndNoSecrets(t *testing.T) {
	folder := t.TempDir()
	mustWrite(t, filepath.Join(folder, ".env"), "TOKEN=s3cret\n")
	text := strings.Replace(example, "env: {MODE: fast}", "env: {MODE: s3cret}\n    env_file: .env", 1)
	d := config.Describe(mustParse(t, filepath.Join(folder, "actors.yaml"), text))
	out, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(out), "s3cret") {
		t.Errorf("a value is shown: %s", out)
	}
	var got struct {
		File, Data string
		Actors     []struct {
			Actor, Mode, Cwd, Timeout, Umask string
			EnvFile                          string `json:"env_file"`
			Env, Command, After              []string
			Replicas                         int
			Lease                            struct{ TTL string }
			Inbox                            map[string]any
			Ready                            map[string]any
			Claim                            map[string]any
		}
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	resize := got.Actors[2]
	for _, p := range []struct{ what, got, want string }{
		{"file", got.File, folder + "/actors.yaml"},
		{"data", got.Data, folder + "/.sovereign"},
		{"actor", resize.Actor, "resize"},
		{"mode", resize.Mode, "task"},
		{"cwd", resize.Cwd, folder + "/work"},
		{"env_file", resize.EnvFile, folder + "/.env"},
		{"env", strings.Join(resize.Env, " "), "MODE TOKEN"},
		{"timeout", resize.Timeout, "36h"},
		{"umask", resize.Umask, "0077"},
		{"lease.ttl", resize.Lease.TTL, "15s"},
		{"ready.timeout", got.Actors[0].Ready["timeout"].(string), "30s"},
	} {
		if p.got != p.want {
			t.Errorf("%s: got %q, want %q", p.what, p.got, p.want)
		}
	}
	if resize.Claim != nil || resize.Ready != nil || got.Actors[0].Inbox != nil {
		t.Errorf("shows what does not hold in the mode: %s", out)
	}
}

// The settings come in the order of the reference page, whatever the order of
// the file.
func TestDescribe_KeepsTheOrderOfTheReference(t *testing.T) {
	d := config.Describe(mustParse(t, "/d/actors.yaml", "actors: {a: {log: {keep: 1}, mode: daemon, command: x}}"))
	at := 0
	for _, k := range config.Keys() {
		if at < len(d.Actors[0].Settings) && d.Actors[0].Settings[at].Key == k.Path {
			at++
		}
	}
	if at != len(d.Actors[0].Settings) {
		t.Errorf("out of order from %v", d.Actors[0].Settings[at])
	}
}
