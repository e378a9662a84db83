/* A store's line of writers: one leader at a time orders a group of appends on a lane, hands the line on,
 * and waits for the flush of its group while the next one orders on the other lane. Without a free lane
 * each member waits for a flush of its own. Each caller appends ROUNDS times. Each mutation is a macro;
 * queue.sh finds each. */

#ifndef CALLERS
#define CALLERS 3
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif
#define LANES 2
#define LARGEST_GROUP 2

mtype = { outside, waiting, leading, done };
mtype state[CALLERS] = outside;
byte line[CALLERS];              /* who is in line, the first at 0 */
byte length = 0;
byte ordering = 0;               /* so many leaders have the order lock's connection */
bool is_ordered[CALLERS];
bool is_on_lane[CALLERS];
bool is_durable[CALLERS];
bool is_busy[LANES];
byte users[LANES];               /* so many groups have a lane's connection */

inline gather() {
  size = 0;
  do
  :: size < length && size < LARGEST_GROUP -> group[size] = line[size]; size++
  :: else -> break
  od
}

/* The group leaves the line, and whoever is at its front leads. */
inline move_on() {
  i = 0;
  do
  :: i + size < length -> line[i] = line[i + size]; i++
  :: else -> break
  od;
  length = length - size;
#ifndef NOBODY_LEADS_NEXT
  if
  :: length > 0 -> state[line[0]] = leading
  :: else
  fi;
#endif
  i = 0
}

inline find_lane() {
  lane = 0;
  do
  :: lane < LANES && is_busy[lane] -> lane++
  :: else -> break
  od;
  if
  :: lane < LANES -> is_busy[lane] = true; users[lane]++; assert(users[lane] == 1)
  :: else
  fi
}

inline free_lane() {
  if
  :: lane < LANES -> is_busy[lane] = false
  :: else
  fi
}

inline wake_members() {
  i = 0;
  do
  :: i < size ->
     if
     :: group[i] != me -> state[group[i]] = done
     :: else
     fi;
     i++
  :: else -> break
  od;
  i = 0
}

proctype caller(byte me) {
  byte group[LARGEST_GROUP];
  byte size = 0;
  byte lane = 0;
  byte round = 0;
  byte i = 0;

  do
  :: round == ROUNDS -> break
  :: round < ROUNDS ->
     round++;
     d_step {
       line[length] = me;
       length++;
       state[me] = (length == 1 -> leading : waiting);
       is_ordered[me] = false;
       is_durable[me] = false
     };
     if
     :: state[me] == done -> skip
     :: state[me] == leading ->
        d_step { gather(); find_lane() };
#ifdef LINE_MOVES_BEFORE_ORDER
        d_step { move_on() };
#endif
        d_step { assert(ordering == 0); ordering++ };
        d_step {
          ordering--;
          do
          :: i < size ->
             assert(!is_ordered[group[i]]);
             is_ordered[group[i]] = true;
             is_on_lane[group[i]] = lane < LANES;
             i++
          :: else -> break
          od;
          i = 0
        };
#ifdef LANE_IS_FREE_BEFORE_FLUSH
        d_step { free_lane() };
#endif
#ifndef LINE_MOVES_BEFORE_ORDER
        d_step { move_on() };
#endif
#ifdef WOKEN_BEFORE_FLUSH
        d_step { wake_members() };
#endif
        d_step {
          do
          :: lane < LANES && i < size -> is_durable[group[i]] = true; i++
          :: else -> break
          od;
          i = 0;
          if
          :: lane < LANES -> users[lane]--
          :: else
          fi;
#ifndef LANE_IS_FREE_BEFORE_FLUSH
          free_lane()
#endif
        };
#ifndef WOKEN_BEFORE_FLUSH
        d_step { wake_members() }
#endif
     fi;
     d_step {
       /* Nobody returns before this: with the flush of its group, or with one of its own. */
       assert(is_ordered[me]);
       assert(is_durable[me] || !is_on_lane[me]);
       state[me] = outside
     }
  od
}

init {
  byte me = 0;
  atomic {
    do
    :: me < CALLERS -> run caller(me); me++
    :: else -> break
    od;
    me = 0
  }
}
