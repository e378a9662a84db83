/* The bell of an append on PostgreSQL: followers that sleep hold it together, each append tries to take
 * it for itself under the order lock and keeps it until it is visible, and one that doesn't get it rings.
 * A follower that sleeps here looks never again by itself: one that sleeps past an event for ever is an
 * end of the model that isn't valid. Each mutation is a macro; bell.sh finds each. */

#ifndef FOLLOWERS
#define FOLLOWERS 2
#endif
#ifndef APPENDERS
#define APPENDERS 2
#endif
#define ROUNDS 2
#define EVENTS (APPENDERS * ROUNDS)

bool is_locked = false;          /* the order lock */
byte sleepers = 0;               /* so many hold the bell */
bool is_taken = false;           /* an append holds it */
byte visible = 0;                /* events that a look finds */
bool is_rung[FOLLOWERS];         /* a notice has come that isn't read yet */

inline ring_for_all() {
  atomic {
    do
    :: rings && i < FOLLOWERS -> is_rung[i] = true; i++
    :: else -> break
    od;
    i = 0
  }
}

inline give_bell_back() {
  atomic {
    if
    :: has_bell -> is_taken = false; has_bell = false
    :: else
    fi
  }
}

proctype appender() {
  byte round = 0;
  byte i = 0;
  bool rings;
  bool has_bell = false;
  do
  :: round < ROUNDS ->
     atomic { !is_locked -> is_locked = true };
     atomic {
       rings = sleepers > 0 || is_taken;
       if
       :: !rings -> is_taken = true; has_bell = true
       :: else
       fi
     };
#ifdef RINGS_BEFORE_COMMIT
     ring_for_all();
#endif
#ifdef BELL_RELEASED_BEFORE_COMMIT
     give_bell_back();
#endif
     visible++;
     /* The server gives a transaction's locks back once it is visible, in any order. */
     if
     :: give_bell_back(); is_locked = false
     :: is_locked = false; give_bell_back()
     fi;
#if !defined(NOBODY_RINGS) && !defined(RINGS_BEFORE_COMMIT)
     ring_for_all();
#endif
     round++
  :: else -> break
  od
}

proctype follower(byte me) {
  byte seen = 0;
  byte looked;
  bool is_asleep = false;
  do
  :: seen == EVENTS -> break
  :: else ->
#ifdef LOOKS_BEFORE_IT_LIES_DOWN
     looked = visible;
#endif
     /* It tries, and never waits. */
     atomic {
       if
       :: !is_asleep && !is_taken -> sleepers++; is_asleep = true
       :: else
       fi
     };
#ifndef LOOKS_BEFORE_IT_LIES_DOWN
     looked = visible;
#endif
     if
     :: looked != seen ->
        seen = looked;
        /* Or it comes back at its deadline, and stays asleep. */
        if
        :: atomic { is_asleep -> sleepers--; is_asleep = false }
        :: skip
        fi
     :: looked == seen && is_asleep -> atomic { is_rung[me] -> is_rung[me] = false }
     :: looked == seen && !is_asleep -> skip
     fi
  od;
  atomic { if :: is_asleep -> sleepers-- :: else fi }
}

init {
  byte number = 0;
  atomic {
    do
    :: number < FOLLOWERS -> run follower(number); number++
    :: else -> break
    od;
    number = 0;
    do
    :: number < APPENDERS -> run appender(); number++
    :: else -> break
    od
  }
}
