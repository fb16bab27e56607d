package config_test

import (
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v4"

	"github.com/sovereign-run/sovereign/config"
)

var update = flag.Bool("update", false, "write the generated files of docs anew")

//go:generate go test -run TestGenerated -update .

const (
	schemaFile    = "../docs/actors.schema.json"
	referenceFile = "../docs/actors.md"
)

// The schema and the table of keys that ship are those of the table. Change a
// key without `go generate ./config` and this fails.
func TestGenerated_FilesAreUpToDate(t *testing.T) {
	page := mustRead(t, referenceFile)
	for file, want := range map[string]string{
		schemaFile:    string(config.Schema()),
		referenceFile: config.WithReference(page),
	} {
		if *update {
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if mustRead(t, file) != want {
			t.Errorf("%s is not up to date; run go generate ./config", file)
		}
	}
}

// Every key has a meaning, and a row on the reference page.
func TestReference_DocumentsEveryKey(t *testing.T) {
	page := mustRead(t, referenceFile)
	for _, k := range config.Keys() {
		if k.Meaning == "" {
			t.Errorf("%s has no meaning", k.Path)
		}
		if !strings.Contains(page, "| `"+k.Path+"` |") {
			t.Errorf("%s has no row in %s", k.Path, referenceFile)
		}
	}
}

// Every built-in default is a value that its key accepts.
func TestKeys_AcceptTheirDefaults(t *testing.T) { config.AllStandards() }

// The schema accepts what is documented and refuses what Parse refuses for its
// form alone.
func TestSchema_JudgesAsParseDoes(t *testing.T) {
	var s jsonschema.Schema
	if err := json.Unmarshal(config.Schema(), &s); err != nil {
		t.Fatal(err)
	}
	schema, err := s.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
	if err != nil {
		t.Fatal(err)
	}
	good := map[string]string{"example": example, "all defaults": allDefaults, "scalars": scalars}
	bad := map[string]string{
		"unknown key":          "actors: {a: {comand: x}}",
		"unknown key of file":  "actors: {a: {command: x}}\nactor: 1",
		"unknown nested key":   "actors: {a: {command: x, retry: {tries: 1}}}",
		"unknown in defaults":  "defaults: {x: 1}\nactors: {a: {command: x}}",
		"no actors":            "version: 1",
		"empty actors":         "actors: {}",
		"bad name":             "actors: {A: {command: x}}",
		"empty command":        "actors: {a: {command: []}}",
		"duration without":     "actors: {a: {command: x, timeout: 30}}",
		"duration bad":         "actors: {a: {command: x, timeout: 30y}}",
		"size bad":             "actors: {a: {command: x, limits: {memory: 1MB}}}",
		"replicas zero":        "actors: {a: {command: x, replicas: 0}}",
		"replicas text":        "actors: {a: {command: x, replicas: many}}",
		"jitter":               "actors: {a: {command: x, retry: {jitter: 2}}}",
		"mode":                 "actors: {a: {command: x, mode: job}}",
		"signal":               "actors: {a: {command: x, stop: {signal: SIGTERM}}}",
		"after text":           "actors: {a: {command: x, after: b}}",
		"env name":             "actors: {a: {command: x, env: {A-B: 1}}}",
		"env of ours":          "actors: {a: {command: x, env: {SOVEREIGN_X: 1}}}",
		"env list":             "actors: {a: {command: x, env: {A: [1]}}}",
		"mapping where scalar": "actors: {a: {command: x, cwd: {a: 1}}}",
		"version":              "version: 2\nactors: {a: {command: x}}",
	}
	judge := func(text string) error {
		var v any
		if err := yaml.Load([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		v = throughJSON(t, v)
		return schema.Validate(v)
	}
	for name, text := range good {
		if err := judge(text); err != nil {
			t.Errorf("%s: the schema refuses it: %v", name, err)
		}
		if _, err := config.Parse("actors.yaml", []byte(text)); err != nil {
			t.Errorf("%s: Parse refuses it: %v", name, err)
		}
	}
	for name, text := range bad {
		if judge(text) == nil {
			t.Errorf("%s: the schema accepts it", name)
		}
		if _, err := config.Parse("actors.yaml", []byte(text)); err == nil {
			t.Errorf("%s: Parse accepts it", name)
		}
	}
}

// throughJSON is v as a JSON decoder would give it.
func throughJSON(t *testing.T, v any) any {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func mustRead(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
