# To be sourced: the incidents. Each makes a state, checks what is told of it, and does what is advised.

all_incidents=(broker_down stream_deleted stream_purged stream_full message_too_large worker_lost disk_full
  older_backup projector_throws database_stopped long_transaction partitions_resized same_worker_id
  timers_overdue)

# live PARTITIONS: a store that is well, with a worker and some history.
live() {
  begin "$1"
  start_worker w1
  append "$(is_long_or 5000 200)"
  published
  first=$((appended + 1))
  moment=$(now)
}

broker_down() {
  live 4
  stop_broker
  append 20
  told worker_cut_off w1 "$url"
  dated
  told outbox_cut_off '' 'no worker reaches its broker' worker_cut_off
  dated
  why '' '20 messages are pending, and no worker reaches its broker' "worker 'w1' is cut off from its broker"
  why "$first" "message $first of order-" 'no worker reaches its broker'
  advised 'start the broker'
  start_broker
  published
  # A broker that was started again has forgotten which message was its last.
  ! grep -q 'publish_failed' w1.log || fail "w1 warns of what is expected: $(grep publish_failed w1.log)"
  well
  whole
}

stream_deleted() {
  live 4
  jetstream delete SHOP_p01
  # Also while nothing is to be published.
  told stream_unfit p01 'SHOP_p01'
  append 40
  told partition_broker_lost p01 'the broker has nothing'
  dated
  pasteable
  why p01 'partition p01 is stopped (broker_lost)'
  follow 'stela outbox partitions adopt p01' --yes
  gone partition_broker_lost p01
  # What was lost is missing until it is sent again.
  told partition_uncompared p01 missing
  dated
  follow 'stela outbox reconcile --against-broker' --yes
  published
  well
  whole
}

stream_purged() {
  live 4
  jetstream purge SHOP_p01
  append 40
  published
  told stream_purged p01 purged
  why p01 'partition p01: its stream begins at message'
  doubts_the_stream
  follow 'stela outbox reconcile --against-broker --dry-run'
  stela outbox reconcile --against-broker --yes
  published
  well
  whole
}
# What was purged isn't "ok".
doubts_the_stream() {
  local said
  said=$(stela doctor) || true
  [[ $said == *'warning  stream_purged: partition p01'* ]] || fail "'stela doctor' says of a purged stream: $said"
}

stream_full() {
  # Nothing but the operator ends the wait.
  retry_backoff=10m
  live 4
  jetstream set SHOP_p01 max_bytes="$(($(bytes_of SHOP_p01) + 100))"
  # Before anything is refused.
  told stream_nearly_full p01 SHOP_p01
  append 40
  told partition_backing_off p01 'maximum bytes exceeded'
  dated
  why p01 'partition p01 is backing off: maximum bytes exceeded'
  said SHOP_p01
  said max_bytes
  doctor_says max_bytes
  jetstream set SHOP_p01 max_bytes=-1
  follow 'stela outbox partitions retry p01'
  published
  well
  whole
}
bytes_of() { jetstream info "$1" | "$python" -ISc 'import json, sys; print(json.load(sys.stdin)["state"]["bytes"])'; }

message_too_large() {
  live 4
  local stream
  for stream in order-3 order-4; do
    printf '{"stream":"%s","type":"order.noted","publish":true,"data":{"note":"%s"}}\n' $stream \
      "$(head -c 100000 /dev/zero | tr '\0' x)" | stela events append --stdin
    appended=$((appended + 1))
  done
  append 40
  told outbox_parked '' 'messages parked'
  published_meanwhile
  follow 'stela outbox list --state parked'
  advised "'stela outbox retry --all'"
  why "$first" "message $first of order-3 is parked (refused)"
  said 'its payload has 97.6 KiB, and max_payload of the server is 64 KiB'
  said 'raise max_payload of the server'
  why order-4 "message $((first + 1)) of order-4 is parked (refused)"
  why "$((first + 3))" "message $((first + 3)) of order-4 is parked behind an earlier message" 'is parked (refused)'
  # The broker is to take the one; the other is given up.
  stop_broker
  sed -i 's/max_payload: 64KB/max_payload: 1MB/' nats.conf
  start_broker
  follow_why order-3 "stela outbox retry $first"
  follow_why order-4 "stela outbox discard $((first + 1))" --yes
  published
  well
  whole
}
worker_lost() {
  live 4
  stop w1 KILL
  append 20
  told worker_ended w1 'its process has ended'
  dated_by_heartbeat
  told outbox_unattended '' 'no live worker' worker_ended
  dated
  why '' '20 messages are pending, and there is no live worker' "worker 'w1' is gone (its process has ended)"
  advised "'stela outbox work'"
  start_worker w2
  published
  well

  # One that shares the work is frozen, and the other takes over.
  start_worker w3
  eventually has_partitions w3 2 || fail "w3 gets no two partitions: $(stela outbox workers)"
  # Each of its partitions is asked for, and answered.
  append 100
  published
  freeze w3
  well

  # And one that has just begun, and has no partition yet.
  stop w3
  start_worker w4
  freeze w4
  gone worker_cut_off w4
  stop w4
  well
  whole
}
# freeze WORKER: until another one has published what came meanwhile.
freeze() {
  kill -STOP "${pids[$1]}"
  moment=$(now)
  append 100
  told worker_silent "$1" "its process ${pids[$1]} is running"
  dated_by_heartbeat
  why "$1" "worker '$1' is silent"
  published_meanwhile
  kill -CONT "${pids[$1]}"
  append 100
  published_meanwhile
  eventually is_decided "$1"
}
has_partitions() { stela outbox workers | grep -q "^$1 .* yes .* $2 "; }
is_decided() { has_partitions "$1" '[12]' || ask worker_cut_off "$1"; }

disk_full() {
  [ "$engine" = sqlite ] || skip 'it is for SQLite'
  mkdir disk
  [ -n "${INCIDENTS_MOUNT_NAMESPACE:-}" ] && mount -t tmpfs -o size="$(is_long_or 40m 4m)" incidents disk 2>/dev/null ||
    skip 'a small disk can only be mounted by root'
  folder_of_database=$folder/disk
  live 4
  head -c 100m /dev/zero >disk/ballast 2>/dev/null || true
  local status=0
  events 20000 | stela events append --stdin --batch 100 >full.jsonl 2>full.log || status=$?
  [ $status = 1 ] && grep -q 'full' full.log || fail "an append to a full disk ends with $status: $(cat full.log)"
  told database_down '' 'its disk is full'
  why '' "database: the database can't be written to: its disk is full"
  rm disk/ballast
  gone database_down ''
  append 100
  published
  well
  whole
}

older_backup() {
  live 4
  save_database
  append 100
  published
  stop w1
  restore_database
  moment=$(now)
  # The other half of the streams has nothing new.
  append 10
  start_worker w1
  told partition_store_went_back p00 'the broker has'
  dated
  why p00 'partition p00 is stopped (store_went_back)'
  follow 'stela outbox reconcile --from-broker --dry-run'
  follow 'stela outbox reconcile --from-broker' --yes >imported.log
  grep '^50 events of 10 streams imported' imported.log || fail "not half was imported: $(cat imported.log)"
  local partition
  for partition in p00 p01 p02 p03; do
    told partition_store_went_back $partition 'the broker has'
    follow "stela outbox partitions adopt $partition" --yes
  done
  # A dump has the tables of timers, whether or not somebody has processes.
  if [ "$engine" = postgres ]; then
    told timers_held '' 'this database is a copy'
    known_gap dated
    follow 'stela timers resume --dry-run'
    follow 'stela timers resume' --yes
  fi
  append 40
  published
  told partition_uncompared p00 missing
  dated
  follow 'stela outbox reconcile --against-broker' --yes
  published
  well
  whole
}
save_database() {
  if [ "$engine" = sqlite ]; then
    stela backup "$folder/backup.db"
  else
    on_server pg_dump -f "$folder/backup.sql" shop
  fi
}
restore_database() {
  if [ "$engine" = sqlite ]; then
    rm -f "$db" "$db"-*
    cp backup.db "$db"
  else
    on_server dropdb shop
    on_server createdb shop
    on_server psql -q -f "$folder/backup.sql" shop >restored.log
  fi
}

projector_throws() {
  begin 4
  export ORDERS_DB=$db
  start shop orders work "$url"
  orders receive lamp 100
  orders register 1 Ada 'Ferry Road 4'
  orders place 1001 1 lamp 1 100
  eventually has_sold 1 || fail 'no order is projected'
  moment=$(now)
  # Of a type that the application knows, and not as it knows it.
  stela events append --stream order-bad --type order.placed --publish --leave-behind --data '{"customer":"Eve"}'
  orders place 1002 1 lamp 1 100
  told projector_failing sales_per_day 'is corrupt'
  dated
  told projector_stopped sales_per_day 'is stopped at event'
  dated
  why sales_per_day "projector 'sales_per_day' v1 is stopped at event"
  local stopped=0
  while ask projector_stopped '*'; do
    ((++stopped <= 10)) || fail 'what is skipped stays'
    told projector_stopped '*' 'is stopped at event'
    [[ $remedy =~ \'(stela projections skip $subject [0-9]+)\' ]] || fail "no way to skip: $remedy"
    follow "${BASH_REMATCH[1]}" --yes
  done
  well
  eventually has_sold 2 || fail 'later orders are not projected'
  orders list stock
  published
  whole
}
has_sold() { orders list sales | grep -q " $1 "; }

database_stopped() {
  [ "$engine" = postgres ] || skip 'it is for PostgreSQL'
  live 4
  local signal said status
  # By its administrator, at once, and killed.
  for signal in INT QUIT KILL; do
    stop postgres $signal
    told database_down '' "can't connect"
    status=0
    said=$(stela why 2>&1) || status=$?
    [ $status = 3 ] && [[ $said == *"can't connect"* ]] || fail "why ends with $status: $said"
    advised 'start the database'
    start_database
    gone database_down ''
    append 100
    published
    well
  done
  whole
}

long_transaction() {
  [ "$engine" = postgres ] || busy_timeout=1s
  live 4
  if [ "$engine" = sqlite ]; then
    start transaction "$python" -c '
import sqlite3, sys, time
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("BEGIN IMMEDIATE")
time.sleep(600)' "$db"
    told worker_silent w1 'whether the database can be written to'
    dated_by_heartbeat
    doctor_says "process ${pids[transaction]}"
    told database_down '' "process ${pids[transaction]}"
    why w1 "worker 'w1' is silent" "process ${pids[transaction]}"
  else
    start transaction "$postgres/psql" -h "$cluster" -U postgres shop -c 'BEGIN' -c 'SELECT txid_current(), pg_sleep(900)'
    append 100
    published
    well
    # A transaction counts as long after ten minutes.
    [ -z "$is_long" ] || warns_of_the_transaction
  fi
  stop transaction
  append 20
  published
  well
  whole
}
warns_of_the_transaction() {
  local patience=660
  eventually is_warned || fail "'stela outbox check' says nothing: $(stela outbox check)"
  told database_transaction '*' 'is open for'
  dated
  doctor_says 'is open for'
}
is_warned() { [[ $(stela outbox check) == *transaction* ]]; }

partitions_resized() {
  begin 16
  start_worker w1
  start_worker w2
  moment=$(now)
  append_for_a_while &
  local appending=$! count
  for count in 4 32; do
    sleep 0.5
    stela outbox partitions resize $count
    ! ask '*' 'p*' || fail "a resize makes an alarm: $checked"
  done
  wait $appending || fail 'appends failed meanwhile'
  published
  stela outbox partitions sync --prune
  well
  whole
}
append_for_a_while() {
  local i
  for i in $(seq "$(is_long_or 200 20)"); do append 100; done
}

same_worker_id() {
  live 4
  local said status=0
  said=$(stela outbox work --id w1 --once 2>&1) || status=$?
  [ $status = 1 ] && [[ $said == *"a worker named 'w1' is alive"*"process ${pids[w1]}"*--id* ]] ||
    fail "a second w1 ends with $status: $said"
  echo "$said"
  append 100
  published
  well
  whole
}

timers_overdue() {
  begin 4
  export ORDERS_DB=$db
  start shop orders work "$url"
  orders receive lamp 100
  orders register 1 Ada 'Ferry Road 4'
  orders place 1001 1 lamp 1 100
  eventually has_timer || fail 'no timer is set'
  stop shop
  orders place 1002 1 lamp 1 100
  told projector_unattended open_orders 'no runner drives it'
  dated
  # As if it had been due for two minutes.
  local due
  due=$(date -u -d '2 minutes ago' +%FT%TZ)
  moment=$(date -u -d '3 minutes ago' +%FT%T)
  stela timers move payment_deadline order-1001 remind_to_pay "$due"
  told process_overdue payment_deadline 'no runner drives it' projector_unattended
  dated
  why payment_deadline "reaction 'payment_deadline' v1 is"
  advised 'start the application that runs it'
  start shop orders work "$url"
  gone process_overdue payment_deadline
  orders show 1001 | grep -q 'order.reminded' || fail "it didn't fire: $(orders show 1001)"
  published
  well
  whole
}
has_timer() { stela timers list | grep -q remind_to_pay; }
