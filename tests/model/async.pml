/* Appends that nobody waits for, and the executor's threads that carry them out. Callers put appends into a
 * list, and ask the executor for a thread if too few were asked for. A thread stands in the store's line;
 * at its turn it takes a group from the list. Somebody may cancel an append, and at the end the list is closed.
 * Each mutation is a macro; async.sh finds each. */

#ifndef APPENDS
#define APPENDS 5
#endif
#define THREADS 2
#define GROUP 2
#define MOST_DRAINS 2

mtype = { outside, queued, taken, committed, answered, cancelled };
mtype state[APPENDS] = outside;
byte answers[APPENDS];
byte first = 0;                  /* the list holds what is queued from here on, in order */
byte length = 0;
byte posted = 0;                 /* tasks that the executor hasn't begun */
byte drains = 0;                 /* asked for, and without a group yet */
byte busy = 0;
bool is_led = false;
bool is_closed = false;
bool is_submitted = false;
bool is_stopped = false;         /* the executor begins nothing more */
byte last_taken = 0;

#define needs_drain (drains < MOST_DRAINS && length > drains * GROUP)

inline ask() {
  if
  :: needs_drain -> drains++; posted++
  :: else
  fi
}

/* The callers, one after the other: their order is what is promised. */
active proctype caller() {
  byte n = 0;
  do
  :: n == APPENDS || is_closed -> break
  :: n < APPENDS && !is_closed ->
     atomic {
       if
       :: is_closed -> break
       :: else -> state[n] = queued; length++
       fi
     };
#ifndef NO_THREAD_ASKED_FOR
     /* Not in the same step: others may take it meanwhile. */
     atomic { ask() };
#endif
     n++
  od;
  is_submitted = true
}

/* One append is cancelled, at any time or never. */
active proctype canceller() {
  if
  :: atomic {
       state[1] == queued -> state[1] = cancelled; length--; answers[1]++
     }
#ifdef CANCELS_WHAT_HAS_BEGUN
  :: atomic { state[1] == taken -> state[1] = cancelled; answers[1]++ }
#endif
  :: true
  fi
}

active [THREADS] proctype thread() {
  byte group[GROUP];
  byte size;
  byte i;
  bool has_begun;
  bool goes_on;
  do
  :: atomic { is_stopped -> break }
  :: atomic { is_closed && posted == 0 -> break }
  :: atomic {
       posted > 0 && !is_stopped -> posted--;
       if
       :: is_closed -> has_begun = false
       :: else -> busy++; has_begun = true
       fi;
       goes_on = has_begun
     };
     do
     :: !goes_on -> break
     :: goes_on ->
        /* Its turn in the store's line. */
        atomic { !is_led -> is_led = true };
        d_step {
          drains--;
          size = 0;
          i = 0;
          do
          :: i < APPENDS && size < GROUP ->
             if
             :: state[i] == queued ->
                assert(i >= last_taken);
                last_taken = i;
                state[i] = taken;
                length--;
                group[size] = i;
                size++
             :: else
             fi;
             i++
          :: else -> break
          od;
          i = 0
        };
        d_step {
          do
          :: i < size ->
             assert(state[group[i]] == taken);
             state[group[i]] = committed;
             i++
          :: else -> break
          od;
          i = 0;
          is_led = false
        };
        d_step {
          do
          :: i < size -> state[group[i]] = answered; answers[group[i]]++; i++
          :: else -> break
          od;
          i = 0
        };
        atomic {
          goes_on = false;
#ifndef NOBODY_GOES_ON
          if
          :: needs_drain ->
             drains++;
             /* The executor has a thread for it, or this one goes on. */
             if
             :: posted++
             :: goes_on = true
             fi
          :: else
          fi
#endif
        }
     od;
     atomic {
       if
       :: has_begun -> busy--
       :: else
       fi
     }
  od
}

/* The end: at any time, or when all are answered; the executor may have stopped before. */
active proctype ending() {
  byte i = 0;
  if
  :: atomic { is_stopped = true }
  :: true
  fi;
  if
  :: is_stopped
  :: true
  :: atomic { is_submitted && !is_stopped -> skip };
     /* Without an end, and with an executor, all are answered. */
     (length == 0 && busy == 0 && posted == 0)
  fi;
  atomic {
    is_closed = true;
    do
    :: i < APPENDS ->
       if
       :: state[i] == queued -> state[i] = cancelled; length--; answers[i]++
       :: else
       fi;
       i++
    :: else -> break
    od;
    i = 0
  };
#ifndef ENDS_BEFORE_WHAT_HAS_BEGUN
  busy == 0;
#endif
  atomic {
    do
    :: i < APPENDS ->
       assert(state[i] == outside || state[i] == answered || state[i] == cancelled);
       assert(answers[i] == (state[i] == outside -> 0 : 1));
       i++
    :: else -> break
    od
  }
}
