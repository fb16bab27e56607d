package main

import (
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store/bolt"
)

// storage is the database as the server asks it.
type storage struct {
	*bolt.DB
	reading bool // open to be read only
}

func (s storage) Room() protocol.StoreStatus {
	now := s.Stats()
	full, _ := s.Full()
	room := protocol.StoreStatus{FileBytes: now.FileSize, Full: full}
	if err := s.Refused(); err != nil {
		room.Refused = refusal.Of(err).Why
	}
	if !s.reading {
		free := int64(now.FreePages+now.PendingPages) * int64(now.PageSize)
		room.FreeBytes = &free
	}
	return room
}
