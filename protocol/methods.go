package protocol

// Version of the protocol, told by hello. It rises when a program written for
// an earlier one could misunderstand an answer.
const Version = 1

// The methods of workers, on fd 3 and on worker.sock.
const (
	MethodClaim    = "claim"
	MethodRenew    = "renew"
	MethodComplete = "complete"
	MethodFail     = "fail"
	MethodRelease  = "release"
	MethodSettle   = "settle"
	MethodCheck    = "check"
	MethodSend     = "send" // of people too, on control.sock
	MethodReady    = "ready"
	MethodPing     = "ping"
)

// The notifications to workers on fd 3.
const (
	NotifyDrain     = "drain"      // claim no more, finish, exit
	NotifyClaimLost = "claim_lost" // params: ClaimLost
	NotifyLeaseLost = "lease_lost" // params: LeaseLost; stop at once
)

// The methods of people, on control.sock.
const (
	MethodHello        = "hello"
	MethodStatus       = "status"
	MethodInboxList    = "inbox.list"
	MethodInboxShow    = "inbox.show"
	MethodInboxRetry   = "inbox.retry"
	MethodInboxCancel  = "inbox.cancel"
	MethodInboxDrop    = "inbox.drop"
	MethodInboxPurge   = "inbox.purge"
	MethodInboxFollow  = "inbox.follow"
	MethodAwait        = "await"
	MethodActorStart   = "actor.start"
	MethodActorStop    = "actor.stop"
	MethodActorRestart = "actor.restart"
	MethodActorSignal  = "actor.signal"
	MethodActorPause   = "actor.pause"
	MethodActorResume  = "actor.resume"
	MethodReload       = "reload"
	MethodShutdown     = "shutdown"
	MethodUpgrade      = "upgrade"
	MethodUpgraded     = "upgrade.result" // what became of an upgrade; upgrade itself answers the same
	MethodEventsList   = "events.list"
	MethodLeasesList   = "leases.list"
	MethodLeasesReset  = "leases.reset"
	MethodVerify       = "verify"
	MethodMetrics      = "metrics"
	MethodLogsReopen   = "logs.reopen"
)
