package protocol

// MethodBackup holds the store's file so that the client can copy it: it is
// answered with a notification, BackupBegun, and from then on all of the file that
// counts stays as it is until the client closes the connection. The copy is good if
// the connection still answers when it is done, and has not told NotifyBackupEnded
// before. It holds up nobody, but the file grows with all that is written meanwhile.
const MethodBackup = "backup"

// The notifications of a backup.
const (
	NotifyBackupBegun = "backup.begun" // params: BackupBegun
	NotifyBackupEnded = "backup.ended" // the file is not held any more
)

// BackupBegun says how to copy the file: Head, then what lies behind as many bytes
// of the file, up to Size bytes in all.
type BackupBegun struct {
	Head []byte `json:"head"` // base64
	Size int64  `json:"size"`
}
