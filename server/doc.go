// Package server is where people and workers reach a store: two sockets in its
// folder, and one channel for each long-lived worker.
//
//	people ──► control.sock (0600) ──► Control ──┬──► mailbox.Box
//	                                             └──► Supervisor
//	shells ──► worker.sock  (0666) ──► workers ──┬──► mailbox.Box
//	worker ◄──► fd 3 (socketpair)  ──► workers ──┴──► Processes
//
// It knows connections, lines and who asks. It knows no rule of messages: what is
// current, due or allowed is judged by the mailbox, in the transaction that
// writes. A request on worker.sock says who asks with a process identity and a
// lease token; on a channel the channel itself is the identity. Who connects to
// control.sock must be the supervisor's own user or root, by what the kernel says
// of the peer and not only by the mode of the file.
//
// What is promised of a connection:
//
//   - Requests run side by side and are answered as they end. One that waits
//     (claim, await, events.list) holds up no other. A short one that comes alone
//     is answered before the next is read, unless it takes longer than 100 ms.
//   - What is no request gets an error, and the connection lives on.
//   - A claim whose answer could not be written is released, uncharged. What has
//     been asked otherwise is carried out, also when the peer has gone.
//   - Nothing is kept without bound for a peer that does not read: not more than
//     1024 requests run, 256 wait, and an answer that the peer makes no room for
//     within 10 seconds ends the connection.
//   - A connection can be passed on to another program (Pause): what runs is answered
//     before, what only waits is asked anew there, and no byte is lost.
//   - The end of what the peer sends ends what only waits. Half-closed
//     connections get the other answers.
//
// The sockets work at any depth of folder: an address that would be too long is
// reached through the open folder (Linux) or a link, and workers are given a
// second socket under a short path (see Listener.Path).
//
// Control also answers in process, without a socket, for a command that opened
// the store of a stopped supervisor itself.
package server
