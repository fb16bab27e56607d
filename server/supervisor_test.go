package server_test

import (
	"github.com/sovereign-run/sovereign/server"
	"github.com/sovereign-run/sovereign/supervisor"
)

var (
	_ server.Processes   = (*supervisor.Supervisor)(nil)
	_ supervisor.Channel = (*server.Channel)(nil)
)
