package bolt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/sovereign-run/sovereign/refusal"
)

// A backup of a store in use carries the state record of mailbox.db as it is, and that
// names a log. So does a mailbox.db that somebody has copied out of a folder, which
// without its log is an earlier state of the store. A label tells them apart: it says
// that all that counted when the copy was made is in it.
//
// It lies behind the meta data in the first page, where bbolt keeps nothing and
// writes zeros with every second transaction:
//
//	name and version 8 | transaction of bbolt 8
//
// The transaction is the one that the copy shows. What was written since is not
// covered by a label that is still there.
const (
	labelMagic = "sovbak1\n"
	labelAt    = pageHeader + metaLen
	labelLen   = len(labelMagic) + 8
)

// label puts a label for transaction tx into head, the bytes that a backup begins with.
func label(head []byte, tx uint64) {
	b := append(make([]byte, 0, labelLen), labelMagic...)
	copy(head[labelAt:], binary.BigEndian.AppendUint64(b, tx))
}

// labelled reports whether the database in the file r of size bytes has a label for
// what it shows.
func labelled(r io.ReaderAt, size int64) (bool, error) {
	f, _, err := openPages(r, size)
	if err != nil {
		return false, err
	}
	b := make([]byte, labelLen)
	if _, err := r.ReadAt(b, labelAt); err != nil {
		return false, fmt.Errorf("read its label: %w", err)
	}
	return bytes.HasPrefix(b, []byte(labelMagic)) && binary.BigEndian.Uint64(b[len(labelMagic):]) == f.meta.tx, nil
}

// lastUnlabelled is the last schema of which there are backups without a label.
const lastUnlabelled = 2

// copied reports whether the database in the file r of size bytes is a copy that bbolt
// has made of a state of another, and nothing was written to since. That is what tells a
// backup of a build that knew no label from the file of a store: bbolt gives a copy the
// same meta page twice, under two transactions, and a transaction always moves the root.
func copied(r io.ReaderAt, size int64) bool {
	good, _ := readMetas(r, size)
	if len(good) != 2 {
		return false
	}
	good[1].tx++
	return good[0] == good[1]
}

// noBackup is the refusal for a database that was copied without its log.
func noBackup(doing string) error {
	return refusal.New(refusal.BadRequest, doing,
		"it is no backup, but the "+DataFile+" of a store that was in use: its log, which holds what was confirmed last, is missing",
		"copy "+LogFiles[0]+" and "+LogFiles[1]+" with it into a folder, and make a backup of that, `sovereign backup --data FOLDER FILE`; "+
			"if they are lost, go on without what they held: `sovereign recover --data FOLDER --accept-rollback`")
}
