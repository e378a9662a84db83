/* The relay's protocol with one partition, two workers and two messages, small enough to be explored
 * whole: leases may expire at any time, bytes may arrive late, acknowledgements may get lost, the
 * broker may refuse a message once, and a worker may stop between any two steps for any time.
 *
 * The invariants have the numbers of docs/relay.md. Each mutation is a macro; run.sh finds each. */

#define MESSAGES 2
#define CAPACITY 6     /* of the stream; more copies than that aren't needed to break something */

/* What the broker holds: message numbers in the order in which they were stored. */
byte log_of[CAPACITY];
byte log_size = 0;

/* The partition's row. */
byte owner = 0;        /* 0: nobody; workers are 1 and 2 */
byte epoch = 0;
byte marked = 0;       /* messages 1..marked are published, says the database */

/* What may still go wrong. */
byte lives = 2;        /* expiries */
byte losses = 1;       /* acknowledgements that get lost */
byte refusals = 1;

/* Bytes that a dead connection left behind: a message, and what it expects to follow. */
byte late_message = 0;
byte late_expected = 0;

byte copies[MESSAGES + 1];

/* --- the broker */

#define TAKEN 1
#define REFUSED 2
#define WRONG 3

inline store(message, expected, result) {
  d_step {
#ifdef NO_FENCE
    result = TAKEN;
#else
    if
    :: expected == log_size -> result = TAKEN
    :: else -> result = WRONG
    fi;
#endif
    if
    :: result == TAKEN && log_size < CAPACITY ->
       log_of[log_size] = message;
       log_size++;
       copies[message]++;
       /* 7: no second copy, and nothing after what comes later. */
       assert(copies[message] == 1);
       assert(log_size == 1 || log_of[log_size - 2] < message);
       /* 6: what stands there is a prefix. */
       assert(message == 1 || copies[message - 1] > 0)
    :: else
    fi
  }
}

active proctype late_bytes() {
  byte result;
end:
  do
  :: late_message > 0 ->
     atomic {
       store(late_message, late_expected, result);
       late_message = 0;
       late_expected = 0;
       result = 0
     }
  od
}

active proctype time() {
end:
  do
  :: lives > 0 && owner > 0 ->
     atomic {
       owner = 0;
       lives--;
       printf("fault: pause\n")
     }
  od
}

/* --- a worker */

#define STOPPED (marked == MESSAGES)

proctype worker(byte me) {
  byte mine;           /* the epoch under which it holds the partition */
  byte next;           /* the message to be sent */
  byte tail;           /* what it expects to be the last at the broker */
  byte result;
  byte known;          /* messages up to here are acknowledged to it, and not marked */
  byte pending;        /* what a naive pipeline has sent behind a refused message */

acquire:
end:
  atomic {
    owner == 0 && !STOPPED -> owner = me;
    epoch++;
    mine = epoch;
    printf("worker %d acquires\n", me)
  }

read_back:
  /* What stands there behind the last known message? All of it is marked. */
  atomic {
    tail = log_size;
    known = (log_size > 0 -> log_of[log_size - 1] : 0);
    if
    :: known < marked -> known = marked
    :: else
    fi;
    next = known + 1;
    result = 0
  }
  goto mark;

send:
  if
  :: next > MESSAGES -> goto acquire_again
  :: else
  fi;
  if
  :: /* it is sent, and answered */
     if
     :: refusals > 0 ->
        atomic { refusals--; result = REFUSED; printf("fault: refuse\n") }
     :: atomic { store(next, tail, result); printf("worker %d sends %d\n", me, next) }
     fi
  :: /* its connection dies, and its bytes may arrive later */
     atomic {
       late_message == 0 -> printf("fault: late_bytes\n");
       late_message = next;
       late_expected = tail;
       result = 0
     }
     goto read_back
  fi;
  if
  :: result == TAKEN && losses > 0 ->
     atomic { losses--; printf("fault: lose_reply\n") }
#ifdef REPLIES_NOT_MATCHED
     /* The next reply that comes is taken for the lost one. */
     atomic { known = next + 1; next = known + 1; tail = tail + 2 }
     goto mark
#else
     goto read_back
#endif
  :: result == TAKEN -> known = next; tail++; next++; goto mark
  :: result == REFUSED ->
#ifdef SKIP_FAILED_ROW
     next++;
     goto send
#endif
#ifdef NAIVE_PIPELINE
     /* What was sent behind it is on its way, and expects what the refused one would have been. */
     pending = next + 1;
     if
     :: pending <= MESSAGES -> atomic { store(pending, log_size, result) }
     :: else
     fi
#endif
     goto read_back
  :: result == WRONG -> goto read_back
  fi;


mark:
  /* Under owner and epoch, or not at all. */
  atomic {
    if
#ifndef NO_EPOCH
    :: owner != me || epoch != mine -> printf("worker %d is fenced\n", me); goto acquire
#endif
    :: else ->
#ifdef NO_EPOCH
       /* 3: every change is made under the current owner and epoch. */
       assert(owner == me && epoch == mine);
#endif
       if
       :: known > marked ->
          /* 5: what is marked stands at the broker. */
          assert(known > MESSAGES || copies[known] > 0);
          assert(known <= MESSAGES);
          marked = known
       :: else
       fi
    fi
  }
  goto send;

acquire_again:
  skip
}

init {
  atomic {
    run worker(1);
    run worker(2)
  }
}
