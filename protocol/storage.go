package protocol

// MethodBackup asks for a copy of the store, consistent as of now. The copy comes
// in notifications, BackupChunk, in order and before the answer, which is a
// BackupResult. A connection that asks for a backup asks nothing else meanwhile.
const MethodBackup = "backup"

// NotifyBackup carries a BackupChunk.
const NotifyBackup = "backup.chunk"

// A BackupChunk is the next part of the copy. Size is that of the whole copy, in
// bytes.
type BackupChunk struct {
	Size int64  `json:"size"`
	Data []byte `json:"data"` // base64
}

// BackupResult says how many bytes there were.
type BackupResult struct {
	Size int64 `json:"size"`
}
