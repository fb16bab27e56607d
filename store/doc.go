// Package store says what the rest of sovereign needs from a database: a
// transactional, ordered key-value store with one writer process.
//
// It holds interfaces and bounds only. store/bolt is the engine for one machine;
// store/storetest is the suite that every engine must pass. fence and mailbox
// work on the interfaces, so that the rules they keep do not know the engine.
//
// What an engine promises:
//
//   - an Update is atomic and durable when it returns nil (of one whose function said
//     Asynchronous: soon after, and before all that follows it), and leaves nothing
//     behind when its function returns an error or panics;
//   - functions that run at the same time act as if they ran one after another,
//     each seeing all that the ones before it wrote;
//   - a View sees one state, which no later Update changes;
//   - a number given by Mint, Next or Append is never given twice, whatever
//     happened in between (but Append's, where a crash of the machine takes what was
//     Asynchronous);
//   - when it cannot know whether a write is stored it says so, once and for
//     good: the category outcome_unknown, and Failed is closed.
//
// What it does not promise: how often a function is run (so it has no side
// effects), that numbers have no gaps, and anything about time.
//
//	caller ── Update(fn) ──┐
//	caller ── Update(fn) ──┼── one commit, one sync ── nil to each
//	caller ── Update(fn) ──┘
//
// Counters (Add, Sum, Sums) are kept apart from keys because additions commute:
// an engine folds those of one commit into one write each. A counter whose value
// is 0 is the same as one that does not exist, and Sums leaves it out.
package store
