// Package recovery answers: given what is on disk after a death, what must be
// done?
//
// A process that died cannot say how its work ended, so recovery never infers
// success, however complete the outputs look (P4.2): each attempt that was
// under way gets a receipt "failed, worker_lost", its message goes back or is
// parked by its actor's policy, its staged sends are discarded, and its lease
// is released. One transaction does all that for one attempt (P4.3), by the same
// function that ends every attempt on an ordinary day. Doing it twice changes
// nothing (P4.4).
//
// It runs at three moments, never by polling (P4.8): when the supervisor reaps
// a process (Died), at start-up and in `sovereign recover` for all that a dead
// supervisor left (Reconcile), and at the exact next expiry of a claim (Run).
//
// What is to be done is decided by pure functions of what was found (Decide,
// Reclaimable); applying it is apart. The package knows no processes and no
// signals: whoever calls it has ended the process and its tree first.
package recovery
