package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"github.com/sovereign-run/sovereign/protocol"
)

// patience is how long an operator waits for an answer. A stopped supervisor is
// continued long before.
const patience = 3 * time.Minute

// ask makes one request as an operator, on a connection of its own. An answer that
// is a refusal is a *protocol.Error; after any other error what was asked may have
// been done.
func ask(ctx context.Context, folder, method string, params, result any) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", filepath.Join(folder, "store", "control.sock"))
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	raw, err := json.Marshal(params)
	if err != nil {
		return err
	}
	request := protocol.Request{JSONRPC: "2.0", ID: "1", Method: method, Params: raw}
	if err := protocol.NewEncoder(conn).Encode(request); err != nil {
		return fmt.Errorf("ask for %s: %w", method, err)
	}
	text, err := protocol.NewDecoder(conn).Line()
	if err != nil {
		return fmt.Errorf("wait for %s: %w", method, err)
	}
	var line protocol.Line
	switch err := json.Unmarshal(text, &line); {
	case err != nil:
		return fmt.Errorf("read the answer to %s: %w", method, err)
	case line.Error != nil:
		return line.Error
	case result == nil:
		return nil
	}
	return json.Unmarshal(line.Result, result)
}
