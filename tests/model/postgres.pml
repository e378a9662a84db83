/* Appending on PostgreSQL: a transaction holds the order lock until its commit record is in the log, and
 * a flush outside the lock makes it durable. The model is small enough to be explored whole: clients
 * whose connections are cut at any step, a primary that crashes or gives way to its standby, a relay,
 * and a reader whose answer rests on what it read. All events belong to one stream.
 *
 * With -DASYNCHRONOUS the standby is asynchronous: a failover may then lose what was durable, and the relay
 * must notice. Each mutation is a macro; postgres.sh finds each. */

#ifndef APPENDERS
#define APPENDERS 2
#endif
#define CAPACITY (2 * APPENDERS)
#define ANY 255

#ifdef ASYNCHRONOUS
#define WAITS_FOR_STANDBY false
#else
#define WAITS_FOR_STANDBY (timeline == 1)
#endif

/* --- the server's log: what is in it is visible */

typedef Entry {
  byte group;
  bool is_void;          /* the group is settled as not committed: no event */
  byte before            /* the group of the event before this one; 0: none */
}
Entry log_of[CAPACITY];
byte size = 0;
byte on_disk = 0;        /* so many entries survive a crash */
byte on_standby = 0;     /* so many survive a failover */
byte timeline = 1;
byte incarnation = 1;    /* a connection lives as long as the server that it was made to */
byte events = 0;         /* the entries that aren't void */
byte last_event = 0;     /* the group of the last one */
bool is_locked = false;  /* the order lock */

/* --- what may still go wrong */

byte faults_left = 2;    /* of the faults below, together */

/* --- what somebody outside the database was told of a group */

bool promised[APPENDERS + 1];    /* its event stands */
bool denied[APPENDERS + 1];      /* it doesn't, and never will */

/* --- one append for each client; the server's side of it goes on when the client is cut off */

mtype = { idle, sent, locking, committed, conflict, refused, dead };
mtype backend[APPENDERS + 1] = idle;
byte expected[APPENDERS + 1];
byte witness[APPENDERS + 1];     /* the event that a conflict rests on */
bool waits[APPENDERS + 1];       /* its client waits for the server's reply */
bool is_cut[APPENDERS + 1];

/* The position of a group in the log, or `size`. */
inline find(sought, position) {
  position = 0;
  do
  :: position < size && log_of[position].group != sought -> position++
  :: else -> break
  od
}

/* The position of the event with this number, from 1. */
inline find_event(number, position, count) {
  position = 0;
  count = 0;
  do
  :: position < size ->
     if
     :: log_of[position].is_void
     :: else -> count++
     fi;
     if
     :: count == number -> break
     :: else -> position++
     fi
  :: else -> break
  od;
  count = 0
}

inline add(id, nothing) {
  log_of[size].group = id;
  log_of[size].is_void = nothing;
  if
  :: nothing -> log_of[size].before = 0
  :: else -> log_of[size].before = last_event; last_event = id; events++
  fi;
  size++
}

/* The log ends after `length` entries; nobody may have been told of those that go. */
inline cut_log(length, may_lose) {
  do
  :: size > length ->
     size--;
     if
     :: log_of[size].is_void
     :: else ->
        assert(may_lose || !promised[log_of[size].group]);
        promised[log_of[size].group] = false;
        last_event = log_of[size].before;
        events--
     fi;
     log_of[size].group = 0;
     log_of[size].is_void = false;
     log_of[size].before = 0
  :: else -> break
  od;
  incarnation++;
  is_locked = false;
  one = 1;
  do
  :: one <= APPENDERS ->
     if
     :: backend[one] == idle
     :: else -> backend[one] = dead
     fi;
     one++
  :: else -> break
  od;
  one = 0
}

/* --- the server */

#if defined(SNAPSHOT_BEFORE_LOCK) || defined(VERSION_OUTSIDE_LOCK)
#define VERSION_OUTSIDE version = events
#define VERSION_INSIDE skip
#else
#define VERSION_OUTSIDE skip
#define VERSION_INSIDE version = events
#endif
#if defined(SNAPSHOT_BEFORE_LOCK) || defined(SEQUENCE_OUTSIDE_LOCK)
#define SEQUENCE_OUTSIDE sequence = events + 1
#define SEQUENCE_INSIDE skip
#else
#define SEQUENCE_OUTSIDE skip
#define SEQUENCE_INSIDE sequence = events + 1
#endif
#define READ_OUTSIDE_LOCK VERSION_OUTSIDE; SEQUENCE_OUTSIDE
#define READ_UNDER_LOCK VERSION_INSIDE; SEQUENCE_INSIDE
#ifdef LOCK_RELEASED_BEFORE_COMMIT
#define HELD false
#else
#define HELD true
#endif

proctype server(byte me) {
  byte version = 0;
  byte sequence = 0;
  byte at = 0;
  byte count = 0;
end:
  do
  :: atomic { backend[me] == sent -> READ_OUTSIDE_LOCK; backend[me] = locking }
  /* Two steps under the lock: no other append can come between them, but the server's end can. */
  :: atomic { backend[me] == locking && !is_locked ->
       READ_UNDER_LOCK;
       is_locked = HELD
     };
     d_step {
       if
       :: backend[me] != locking -> skip
       :: else ->
          find(me, at);
          if
          :: at < size -> backend[me] = refused
          :: at == size && expected[me] != ANY && expected[me] != version ->
             find_event(expected[me] + 1, at, count);
             witness[me] = (at < size -> log_of[at].group : 0);
             backend[me] = conflict
          :: else ->
             assert(sequence == events + 1);       /* dense, in the order of commits */
             assert(expected[me] == ANY || expected[me] == events);       /* one event a version */
             assert(!denied[me]);
             add(me, false);
             backend[me] = committed
          fi;
          is_locked = false
       fi;
       version = 0;
       sequence = 0;
       at = 0
     }
  od
}

/* --- flushing: outside the lock, on any connection to this incarnation of the server */

#define DURABLE 1
#define LOST 2
#define CANCELLED 3
#ifdef CANCELLED_IS_DURABLE
#define WHEN_CANCELLED DURABLE
#else
#define WHEN_CANCELLED CANCELLED
#endif

/* The log up to here is durable, as the process remembers it of this incarnation of the server. */
byte durable = 0;
byte durable_of = 0;

#ifdef KEEP_DURABLE_POSITION
#define IS_DURABLE(position) (durable >= position)
#else
#define IS_DURABLE(position) (durable >= position && durable_of == mine)
#endif

inline flush(result, target) {
  atomic {
    if
    :: mine == incarnation -> on_disk = size; target = size; result = 0
    :: else -> result = LOST
    fi
  };
  atomic {
    if
    :: result == LOST
    :: result == 0 && mine != incarnation -> result = LOST
    :: result == 0 && mine == incarnation && (!WAITS_FOR_STANDBY || on_standby >= target) ->
       result = DURABLE
    /* The wait for the standby is cancelled: a warning, and success. */
    :: result == 0 && mine == incarnation && WAITS_FOR_STANDBY && on_standby < target && faults_left > 0 ->
       faults_left--;
       result = WHEN_CANCELLED
    fi;
    if
    :: result == DURABLE -> durable = target; durable_of = mine
    :: else
    fi;
    target = 0
  }
}

/* Somebody outside is told that the event of `id` stands. */
inline promise(id, position) {
  d_step {
    find(id, position);
    if
    :: position < size -> promised[id] = true
    :: else ->
#ifndef ASYNCHRONOUS
       assert(false)
#else
       skip
#endif
    fi;
    position = 0
  }
}

/* --- the application */

proctype client(byte me) {
  byte mine = 0;
  byte result = 0;
  byte target = 0;
  byte at = 0;
  bool found = false;

  atomic {
    mine = incarnation;
    /* It loaded the stream before there was any event, it expects no version, or it finds that what
     * it was to do has been done. */
    if
    :: expected[me] = 0; backend[me] = sent; waits[me] = true
    :: expected[me] = ANY; backend[me] = sent; waits[me] = true
    :: events > 0 -> witness[me] = last_event; goto reads
    fi
  };
  if
  :: atomic { mine == incarnation && !is_cut[me] && backend[me] == committed -> found = true; waits[me] = false }
  :: atomic { mine == incarnation && !is_cut[me] && backend[me] == conflict ->
              waits[me] = false; goto conflicts }
  :: atomic { is_cut[me] || mine != incarnation ->
              waits[me] = false; is_cut[me] = false; goto settle }
  fi;
#ifdef ANSWER_BEFORE_FLUSH
  promise(me, at);
  goto done;
#endif

make_durable:
  flush(result, target);
  if
  :: result == DURABLE
  :: result == CANCELLED -> goto make_durable
  :: result == LOST -> goto settle
  fi;
  if
  :: found -> promise(me, at)
  :: else ->
     d_step {
       find(me, at);
       assert(at == size || log_of[at].is_void);
       denied[me] = true;
       at = 0
     }
  fi;
  goto done;

settle:
  atomic { mine = incarnation; result = 0; target = 0; found = false };
#ifdef SETTLE_BY_TRANSACTION_ID
  /* A transaction that hasn't committed looks as one that never will. */
  d_step {
    find(me, at);
    found = at < size;
    at = 0
  };
#else
  if
  :: atomic { mine == incarnation && !is_locked ->
       d_step {
         find(me, at);
         if
         :: at < size -> found = !log_of[at].is_void
         :: else -> add(me, true)
         fi;
         at = 0
       } }
  :: mine != incarnation -> goto settle
  fi;
#endif
  goto make_durable;

conflicts:
#ifdef CONFLICT_BEFORE_FLUSH
  promise(witness[me], at);
  goto done;
#endif
reads:
#ifdef NO_OP_BEFORE_FLUSH
  promise(witness[me], at);
  goto done;
#endif
  /* The answer rests on an event that may not be durable. */
  flush(result, target);
  if
  :: result == DURABLE -> promise(witness[me], at)
  :: result == CANCELLED -> goto reads
  :: result == LOST
  fi;

done:
  atomic {
    mine = 0; result = 0; found = false; witness[me] = 0;
    if
    :: backend[me] == sent || backend[me] == locking    /* its straggler */
    :: else -> backend[me] = idle; expected[me] = 0
    fi
  }
}

/* --- the relay */

byte broker[APPENDERS];
byte published = 0;
bool is_stopped = false;

active proctype relay() {
  byte mine = 0;
  byte position = 0;
  byte id = 0;
  byte before = 0;
  byte result = 0;
  byte target = 0;
  byte at = 0;
  byte count = 0;

connect:
  skip;
  d_step {
    mine = incarnation;
    id = 0; before = 0; position = 0; result = 0; target = 0;
    /* What it published last must stand where it stood. */
#ifndef FAILOVER_UNNOTICED
    if
    :: published > 0 ->
       find_event(published, at, count);
       is_stopped = (at == size || log_of[at].group != broker[published - 1]);
       at = 0
    :: else
    fi
#endif
  };
#ifndef ASYNCHRONOUS
  assert(!is_stopped);
#endif
  if
  :: is_stopped -> goto stopped
  :: else
  fi;
end:
  do
  :: atomic { mine != incarnation -> goto connect }
  /* What it has published is what the database holds, once it has caught up. */
  :: d_step { mine == incarnation && published == events ->
       assert(published == 0 || broker[published - 1] == last_event)
     }
  :: atomic { mine == incarnation && published < events ->
       find_event(published + 1, position, count);
       id = log_of[position].group;
       before = log_of[position].before;
       position++
     };
#ifndef PUBLISH_BEFORE_FLUSH
     do
     :: IS_DURABLE(position) -> break
     :: else ->
        flush(result, target);
        if
        :: result == DURABLE
        :: result == CANCELLED
        :: result == LOST -> goto connect
        fi
     od;
#endif
     atomic {
       /* What the broker has is of one history. */
       assert(before == (published == 0 -> 0 : broker[published - 1]));
       broker[published] = id;
       published++;
       promise(id, at);
       id = 0; before = 0; position = 0; result = 0
     }
  od;
stopped:
  skip
}

/* --- the world */

active proctype replication() {
end:
  do
  :: atomic { timeline == 1 && on_standby < on_disk -> on_standby++ }
  od
}

active proctype faults() {
  byte one = 0;
end:
  do
  :: d_step { faults_left > 0 && size > 0 ->
       faults_left--;
       cut_log(on_disk, false);
       printf("fault: crash\n")
     }
  :: d_step { faults_left > 0 && timeline == 1 && size > 0 ->
       faults_left--;
#ifdef ASYNCHRONOUS
       cut_log(on_standby, true);
#else
       cut_log(on_standby, false);
#endif
       on_disk = on_standby;
       timeline++;
       printf("fault: failover\n")
     }
  :: atomic { faults_left > 0 && (waits[1] || waits[APPENDERS]) ->
       faults_left--;
       select(one : 1 .. APPENDERS);
       is_cut[one] = waits[one];
       one = 0;
       printf("fault: cut\n")
     }
  od
}

init {
  byte me = 1;
  atomic {
    do
    :: me <= APPENDERS -> run server(me); run client(me); me++
    :: else -> break
    od;
    me = 0
  }
}
