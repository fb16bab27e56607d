/* The lease, claim, settle, sweep and recovery protocol of sovereign, for one
 * message: the part of docs/contract.md that has to hold for every order of
 * events.
 *
 * Two slots. A worker may pause before any of its requests, may die at any
 * moment, and may live on unseen when the supervisor has been killed: then it
 * asks under a lease that has been recovered. The supervisor may be killed; it
 * loses all but the store. A claim's time may be up at any moment, and the sweep
 * may have listed a claim that is not what it was. With -DRESTORE the store is
 * put back to a copy while workers of the lost time live on.
 *
 * Each atomic block is one transaction of the store. A request that is refused
 * changes nothing, so it is no step here; a worker keeps its tokens and may
 * ask again with them for ever.
 *
 * A guard of the code can be taken out (-DNO_TOKEN_IN_SETTLE and so on). README.md
 * says what each is in the code, and check runs the model with and without.
 */
#define SLOTS 2
#ifndef LIVES
#define LIVES 3    /* processes in all; bounds the model */
#endif
#define ATTEMPTS 2 /* charged starts, then DEAD */
#ifdef RESTORE
#define CRASHES 0
#else
#ifndef CRASHES
#define CRASHES 1
#endif
#endif
#define EPOCH 32   /* what a restore adds to the counter */

/* The properties. ONLY picks one, so that check can tell which one fails. */
#define P0       1 /* a completion under a superseded claim or lease is not accepted */
#define TOKENS   2 /* P7: a token is greater than all before, restored or not */
#define OUTCOME  3 /* P3.6, P4.2: DONE by exactly one completion of a worker, and never otherwise */
#define FINAL    4 /* DONE is not left again */
#define RECEIPTS 5 /* P4.4: starts equal receipts, except for the one under way */
#define ONELIVE  6 /* P2.3: no start while another attempt is live */
#define LEASED   7 /* P1.3, P2.1: one host a slot, and only it claims */
#define BOUNDED  8 /* P3.9: at most ATTEMPTS starts */
#define PARKED7  9 /* P7: what a restored copy held as claimed is not started again by itself */
#ifdef ONLY
#define hold(name, condition) assert(name != ONLY || (condition))
#else
#define hold(name, condition) assert(condition)
#endif

mtype = { NEW, CLAIMED, DONE, PARKED, DEAD };

typedef Disk {
  mtype st;                    /* the message's record */
  byte claimP, claimT, claimL; /* its claim: process, token, lease token */
  byte claimS;                 /* and slot */
  byte attempt;                /* starts */
  byte attempts;               /* starts that were charged */
  byte receipts;               /* of the message */
  byte completions;            /* receipts that a worker's complete wrote */
  byte ctr;                    /* the last number that was minted */
  byte leaseP[SLOTS];          /* holder and token of each slot's lease; 0 = none */
  byte leaseT[SLOTS]
}
Disk d;
#ifdef RESTORE
Disk copy, zero;
#endif

/* the world */
bool up = true;         /* a supervisor runs, and has the store's lock */
bool late = false;      /* the time of the present claim is up */
bool alive[LIVES + 1];
byte lives = 0, crashes = 0;
byte running[SLOTS];    /* what the supervisor knows; lost with it */

/* ghosts: who is in the right, kept apart from the records */
byte host[SLOTS];       /* the process that was started last and not yet recovered */
byte liveP = 0, liveT = 0; /* the attempt that is live */
byte highest = 0;       /* the greatest token ever */
bool done = false;
bool unsure = false;    /* restored as claimed: nobody knows what became of it */

/* ---- the guards: functions of the code that answer yes or no ---- */

#ifdef NO_LEASE_IN_SETTLE
#define LEASE_OK_S true
#else
#define LEASE_OK_S (d.leaseP[s] == me && d.leaseT[s] == lt)
#endif
#ifdef NO_LEASE_IN_CLAIM
#define LEASE_OK_C true
#else
#define LEASE_OK_C (d.leaseP[s] == me && d.leaseT[s] == lt)
#endif
#ifdef NO_STATE_IN_SETTLE
#define STATE_OK true
#else
#define STATE_OK (d.st == CLAIMED)
#endif
#ifdef NO_TOKEN_IN_SETTLE
#define TOKEN_OK(t) true
#else
#define TOKEN_OK(t) (d.claimT == t)
#endif
#ifdef NO_PROCESS_IN_SETTLE
#define PROCESS_OK true
#else
#define PROCESS_OK (d.claimP == me && d.claimL == lt)
#endif
#ifdef NO_EXPIRY_IN_SETTLE
#define INTIME true
#else
#define INTIME (!late)
#endif
#define SETTLES(t) (up && t != 0 && LEASE_OK_S && STATE_OK && TOKEN_OK(t) && PROCESS_OK && INTIME)

/* an expired claim can be taken over by id, unless its end makes it DEAD */
#define TAKEOVER (d.st == CLAIMED && late && d.attempts + 1 < ATTEMPTS)
#ifdef NO_STATE_IN_CLAIM
#define CLAIMABLE (d.st == NEW || d.st == CLAIMED)
#else
#define CLAIMABLE (d.st == NEW || TAKEOVER)
#endif

#ifdef NO_STATE_IN_SWEEP
#define SWEEP_STATE true
#else
#define SWEEP_STATE (d.st == CLAIMED)
#endif
#ifdef NO_TOKEN_IN_SWEEP
#define SWEEP_TOKEN true
#else
#define SWEEP_TOKEN (d.claimT == listed)
#endif
#ifdef NO_EXPIRY_IN_SWEEP
#define SWEEP_LATE true
#else
#define SWEEP_LATE late
#endif

#ifdef NO_HELD_IN_ACQUIRE
#define FREE(s) true
#else
#define FREE(s) (d.leaseP[s] == 0)
#endif

#define ENDED (d.st == DONE || d.st == PARKED || d.st == DEAD)

/* ---- the writes ---- */

inline mint(t) {
#ifdef COUNTER_FROM_RECORDS
  d.ctr = (d.leaseT[0] > d.leaseT[1] -> d.leaseT[0] : d.leaseT[1]);
  d.ctr = (d.claimT > d.ctr -> d.claimT : d.ctr);
#endif
  d.ctr++;
  t = d.ctr;
  hold(TOKENS, t > highest);
  highest = (t > highest -> t : highest)
}

/* what must be so whenever a transaction has been committed */
inline audit() {
  done = done || d.st == DONE;
  hold(RECEIPTS, d.st == CLAIMED || d.attempt == d.receipts);
  hold(OUTCOME, d.completions == (d.st == DONE));
  hold(FINAL, !done || d.st == DONE)
}

inline clear() {
#ifndef NO_CLEAR
  d.claimP = 0; d.claimT = 0; d.claimL = 0; d.claimS = 0;
#endif
  late = false
}

/* the end of an attempt that did not complete, whoever says so */
inline giveBack() {
  d.receipts++;
#ifndef NO_CHARGE
  d.attempts++;
#endif
  if :: d.attempts >= ATTEMPTS -> d.st = DEAD :: else -> d.st = NEW fi;
  clear()
}

inline complete(t) {
  hold(P0, host[s] == me && liveP == me && liveT == t);
  d.receipts++;
  d.completions++;
  d.st = DONE;
  clear(); liveP = 0; liveT = 0;
  audit()
}

inline fail(t) {
  hold(P0, host[s] == me && liveP == me && liveT == t);
  giveBack(); liveP = 0; liveT = 0;
  audit()
}

proctype Worker(byte me; byte s; byte lt) {
  byte t = 0, was = 0; /* its newest token, and the one before, which it may still use */
#ifdef NO_ATOMIC_END
  bool half = false;
#endif
end:
  do
  :: atomic { up && LEASE_OK_C && CLAIMABLE ->
       hold(LEASED, host[s] == me);
       if :: TAKEOVER -> giveBack() :: else -> skip fi;
       hold(ONELIVE, liveP == 0);
       hold(PARKED7, !unsure);
       was = t;
       mint(t);
       d.st = CLAIMED; d.claimP = me; d.claimS = s; d.claimT = t; d.claimL = lt;
       d.attempt++;
       hold(BOUNDED, d.attempt <= ATTEMPTS);
       late = false; liveP = me; liveT = t;
       audit() }
#ifdef NO_ATOMIC_END
  :: atomic { SETTLES(t) && !half -> d.receipts++; half = true }
  :: atomic { SETTLES(t) && half -> d.receipts--; half = false; complete(t) }
#else
  :: atomic { SETTLES(t) -> complete(t) }
#endif
  :: atomic { SETTLES(t) -> fail(t) }
  :: atomic { SETTLES(was) -> complete(was) }
  :: atomic { alive[me] -> alive[me] = false; break } /* dies */
  od
}

/* the end of an attempt whose process is gone */
inline lost() {
#ifdef INFER_SUCCESS
  d.receipts++; d.st = DONE; clear()
#else
  giveBack()
#endif
}

/* recovery of one holder: the first transaction releases its lease and ends its
 * first attempts; one that is not among those is ended by a later one */
inline recover(s) {
  host[s] = 0;
  if :: liveP != 0 && liveP == d.leaseP[s] -> liveP = 0; liveT = 0 :: else -> skip fi;
  if
  :: d.st == CLAIMED && d.claimP == d.leaseP[s] ->
       if
       :: true -> lost()
       :: true -> skip /* later */
       fi
  :: else -> skip
  fi;
  running[s] = 0;
#ifndef NO_RELEASE
  d.leaseP[s] = 0; d.leaseT[s] = 0;
#endif
  audit()
}

inline start(s) {
  hold(LEASED, host[s] == 0);
  lives++;
  mint(d.leaseT[s]);
  d.leaseP[s] = lives; running[s] = lives; host[s] = lives; alive[lives] = true;
  run Worker(lives, s, d.leaseT[s])
}

#define STARTS(s) (up && lives < LIVES && running[s] == 0 && FREE(s) && !ENDED)
/* reaped, or on record from before a kill: running says what this supervisor started */
#define GONE(s) (up && d.leaseP[s] != 0 && (running[s] == 0 || !alive[running[s]]))
/* a claim whose lease is not on record any more */
#define ORPHAN (up && d.st == CLAIMED && d.leaseP[d.claimS] != d.claimP)

proctype Supervisor() {
end:
  do
  :: atomic { STARTS(0) -> start(0) }
  :: atomic { STARTS(1) -> start(1) }
#ifndef NO_RECOVERY
  :: atomic { GONE(0) -> recover(0) }
  :: atomic { GONE(1) -> recover(1) }
  :: atomic { ORPHAN -> lost(); audit() }
#endif
  :: atomic { !up -> up = true }
  od
}

/* SIGKILL of the supervisor: what it knew is gone, its workers may live on */
proctype Kill() {
end:
  do
  :: atomic { crashes < CRASHES && up -> crashes++; up = false; running[0] = 0; running[1] = 0 }
  od
}

/* time: a claim of renew: manual may be late at any moment, and is then swept.
 * What is listed may have changed before it is written. */
proctype Sweep() {
  byte listed = 0;
end:
  do
  :: atomic { d.st == CLAIMED && !late && liveT == d.claimT -> late = true; liveP = 0; liveT = 0 }
  :: atomic { up && listed == 0 && d.st == CLAIMED -> listed = d.claimT }
  :: atomic { up && listed != 0 ->
       if
       :: SWEEP_STATE && SWEEP_TOKEN && SWEEP_LATE -> giveBack(); audit()
       :: else -> skip
       fi;
       listed = 0 }
  od
}

#ifdef RESTORE
inline copyDisk(to, from) {
  to.st = from.st; to.claimP = from.claimP; to.claimT = from.claimT; to.claimL = from.claimL; to.claimS = from.claimS;
  to.attempt = from.attempt; to.attempts = from.attempts; to.receipts = from.receipts; to.completions = from.completions;
  to.ctr = from.ctr;
  to.leaseP[0] = from.leaseP[0]; to.leaseP[1] = from.leaseP[1];
  to.leaseT[0] = from.leaseT[0]; to.leaseT[1] = from.leaseT[1]
}

/* a backup, and its restore later, with no supervisor, while workers live on */
proctype Operator() {
  atomic { copyDisk(copy, d) };
  atomic {
    copyDisk(d, copy);
    copyDisk(copy, zero);
    running[0] = 0; running[1] = 0; host[0] = 0; host[1] = 0;
    d.leaseP[0] = 0; d.leaseP[1] = 0; d.leaseT[0] = 0; d.leaseT[1] = 0;
#ifndef NO_EPOCH
    d.ctr = d.ctr + EPOCH;
#endif
    late = false; liveP = 0; liveT = 0; done = false;
    if
    :: d.st == CLAIMED ->
         unsure = true;
#ifdef NO_PARK
         giveBack()
#else
         d.receipts++; d.st = PARKED; clear()
#endif
    :: else -> skip
    fi;
    audit()
  }
}
#endif

init {
  d.st = NEW;
  atomic {
    run Supervisor();
#ifdef RESTORE
    run Operator();
#else
    run Kill();
#endif
#ifndef AUTO
    run Sweep();
#endif
  }
}

/* as long as processes can be started, NEW does not last for ever; and a claim
 * ends, whatever becomes of who holds it */
ltl redelivered { [] ((d.st == NEW && lives < LIVES) -> <> (d.st != NEW || lives == LIVES)) }
ltl unstuck     { [] (d.st == CLAIMED -> <> (d.st != CLAIMED)) }
