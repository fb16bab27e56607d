// Package worker is how a worker written in Go speaks to its supervisor.
//
//	func main() {
//		err := worker.Run(context.Background(), func(ctx context.Context, m *worker.Message) error {
//			return resize(ctx, m.Body)
//		})
//		if err != nil {
//			log.Fatal(err)
//		}
//	}
//
// Run claims messages, calls the handler for each and settles by what it
// returns: nil completes; an error fails the attempt, with Retry after a delay of
// the worker's own, with Dead for good; Release gives the message back uncharged.
// A panic fails the attempt. What the handler sends with Message.Send becomes
// visible with the completion, or not at all.
//
// A SIGTERM, with which the supervisor stops a worker, ends no message: Run claims
// no more and returns nil once what is at hand is settled, for which the worker has
// its actor's stop.timeout (DrainOnSIGTERM).
//
// The handler's context ends when its claim is lost: it expired, a person
// cancelled the message, or the lease of the process was lost. context.Cause
// says which, as a refusal of package refusal. Whatever the handler does from
// then on counts for nothing; the supervisor refuses it, and Run gives the message
// back once the handler has returned. Before a step outside
// that cannot be taken back, Message.Check asks whether the claim is current,
// and a resource that can compare numbers is given Message.Token (the fence).
//
// A claim's time is counted from the moment the request was sent, never from the
// arrival of its answer, so that an answer that was long under way does not make
// it seem longer than it is. Where the worker renews its claims itself (claim.renew:
// manual) Run does so at a third of the time left, and one renewal that gets no
// answer changes nothing: only a refusal or the end of the time does.
//
// Client has one method for each method of the protocol, for workers with a loop
// of their own.
//
// Not promised: that a handler runs once. A message can be handed out again
// after a death or an expiry; only one attempt's completion counts.
package worker
