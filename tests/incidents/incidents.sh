# To be sourced: the incidents. Each makes a state, checks what is told of it, and does what is advised.

all_incidents=(broker_down stream_deleted stream_purged stream_full message_too_large worker_lost disk_full
  older_backup projector_throws database_stopped long_transaction partitions_resized same_worker_id
  timers_overdue)

broker_down() {
  begin 4
  start_worker w1
  append "$(is_long_or 20000 200)"
  published
  moment=$(now)
  stop_broker
  append 20
  told worker_cut_off w1 "$url"
  dated
  told outbox_cut_off '' 'no worker reaches its broker' worker_cut_off
  dated
  why '' '20 messages are pending, and no worker reaches its broker' "worker 'w1' is cut off from its broker"
  why 210 'message 210 of order-10 isn'\''t published yet' 'no worker reaches its broker'
  advised 'start the broker'
  start_broker
  published
  well
  whole
}

stream_deleted() {
  begin 4
  start_worker w1
  append "$(is_long_or 20000 200)"
  published
  moment=$(now)
  jetstream delete SHOP_p01
  append 40
  told partition_broker_lost p01 'the broker has nothing'
  dated
  why p01 'partition p01 is stopped (broker_lost)'
  advised "'stela outbox reconcile --against-broker'"
  follow 'stela outbox partitions adopt p01' --yes
  gone partition_broker_lost p01
  # What was lost is still missing.
  known_gap told '*' p01 missing
  follow 'stela outbox reconcile --against-broker' --yes
  published
  well
  whole
}

stream_purged() {
  begin 4
  start_worker w1
  append "$(is_long_or 20000 200)"
  published
  moment=$(now)
  jetstream purge SHOP_p01
  append 40
  published
  known_gap told 'partition_*' p01 purged
  known_gap why p01 'partition p01'
  known_gap denies_nothing
  known_gap follow 'stela outbox reconcile --against-broker' --yes
  stela outbox reconcile --against-broker --yes
  published
  well
  whole
}
# What hasn't been compared isn't well.
denies_nothing() {
  local said
  said=$(stela doctor) || true
  [[ $said != *'none shorter than it was'* ]] ||
    fail "'stela doctor' says of a purged stream: $(grep 'broker streams' <<<"$said")"
}

stream_full() {
  begin 4
  start_worker w1
  append "$(is_long_or 20000 200)"
  published
  moment=$(now)
  jetstream set SHOP_p01 max_bytes="$(($(bytes_of SHOP_p01) + 100))"
  append 40
  told partition_backing_off p01 'maximum bytes exceeded'
  dated
  why p01 'partition p01 is backing off'
  known_gap told partition_backing_off p01 SHOP_p01
  known_gap told partition_backing_off p01 max_bytes
  jetstream set SHOP_p01 max_bytes=-1
  published
  well
  whole
}
bytes_of() { jetstream info "$1" | "$python" -ISc 'import json, sys; print(json.load(sys.stdin)["state"]["bytes"])'; }

message_too_large() {
  begin 4
  start_worker w1
  append "$(is_long_or 20000 200)"
  published
  moment=$(now)
  local large first
  for large in order-3 order-4; do
    printf '{"stream":"%s","type":"order.noted","publish":true,"data":{"note":"%s"}}\n' $large \
      "$(head -c 100000 /dev/zero | tr '\0' x)" | stela events append --stdin
  done
  first=$((appended + 1))
  appended=$((appended + 2))
  # Those of two streams wait, and the others go on.
  append 40
  told outbox_parked '' 'messages parked'
  eventually is_pending_nothing || fail 'streams that have nothing to do with it wait'
  why $first "message $first of order-3 is parked (refused)"
  why order-4 "message $((first + 1)) of order-4 is parked (refused)"
  known_gap why $first '*' 65,536
  # The broker is to take the one; the other is given up.
  advised "'stela outbox retry --all'"
  stop_broker
  sed -i 's/max_payload: 64KB/max_payload: 1MB/' nats.conf
  start_broker
  follow "stela outbox retry --all" --dry-run
  follow_why order-3 "stela outbox retry $first"
  follow_why order-4 "stela outbox discard $((first + 1))" --yes
  published
  well
  whole
}
is_pending_nothing() { stela outbox check --max-pending 0 --warn-parked 100 >/dev/null; }

worker_lost() {
  begin 4
  start_worker w1
  append "$(is_long_or 20000 200)"
  published
  moment=$(now)
  stop w1 KILL
  append 20
  told worker_ended w1 'its process has ended'
  known_gap dated
  told outbox_unattended '' 'no live worker'
  dated
  why '' '20 messages are pending, and there is no live worker'
  advised "'stela outbox work'"
  start_worker w2
  published
  well

  start_worker w3
  eventually has_partitions w3 || fail "w3 got no partition: $(stela outbox workers)"
  moment=$(now)
  kill -STOP "${pids[w3]}"
  append 100
  told worker_silent w3 "its process ${pids[w3]} is running"
  dated
  why w3 "worker 'w3' is silent"
  # w2 takes over.
  published
  kill -CONT "${pids[w3]}"
  append 100
  published
  well
  whole
}
has_partitions() { stela outbox workers --json | grep -q "\"name\":\"$1\".*\"partitions\":[1-9]"; }

disk_full() {
  [ "$engine" = sqlite ] || skip 'of SQLite'
  mkdir disk
  [ -n "${INCIDENTS_MOUNT_NAMESPACE:-}" ] && mount -t tmpfs -o size=4m incidents disk 2>/dev/null ||
    skip 'a small disk can be mounted by root alone'
  folder_of_database=$folder/disk
  begin 4
  start_worker w1
  append 200
  published
  moment=$(now)
  head -c 4m /dev/zero >disk/ballast 2>/dev/null || true
  local status=0
  events 20000 | stela events append --stdin --batch 100 >appended.log 2>full.log || status=$?
  [ $status = 1 ] || fail "an append to a full disk ends with $status: $(cat full.log)"
  appended=$(grep -c '^{"sequence"' appended.log || true)
  grep -q 'full' full.log || fail "an append to a full disk says: $(cat full.log)"
  told database_down '' 'full'
  why '' 'database: '
  rm disk/ballast
  gone database_down ''
  append 100
  published
  well
  whole
}

older_backup() {
  begin 4
  start_worker w1
  append 200
  published
  save_database
  append 100
  published
  stop w1
  moment=$(now)
  restore_database
  append 40
  start_worker w1
  told partition_store_went_back p00 "the broker has"
  dated
  why p00 'partition p00 is stopped (store_went_back)'
  follow 'stela outbox reconcile --against-broker --dry-run'
  local partition
  for partition in p00 p01 p02 p03; do
    told partition_store_went_back $partition 'the broker has'
    follow "stela outbox partitions adopt $partition" --yes
  done
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
    rm "$db" "$db"-*
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
  orders place 1001 Ada lamp 1 100
  eventually has_sold 1 || fail 'no order is projected'
  moment=$(now)
  # Of a type that the application knows, and not as it knows it.
  stela events append --stream order-bad --type order.placed --publish --leave-behind --data '{"customer":"Eve"}'
  orders place 1002 Ada lamp 1 100
  told projector_stopped sales_per_day 'is stopped at event'
  why sales_per_day "projector 'sales_per_day' v1 is stopped"
}
has_sold() { orders list sales | grep -q "$1"; }

database_stopped() {
  [ "$engine" = postgres ] || skip 'of PostgreSQL'
  begin 4
  start_worker w1
  append "$(is_long_or 20000 200)"
  published
  local signal
  # Stopped as by its administrator, at once, and killed.
  for signal in INT QUIT KILL; do
    stop postgres $signal
    told database_down '' 'database: '
    why_not
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
  begin 4
  start_worker w1
  append "$(is_long_or 20000 200)"
  published
  moment=$(now)
  if [ "$engine" = sqlite ]; then
    start transaction "$python" -c '
import sqlite3, sys, time
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("BEGIN IMMEDIATE")
time.sleep(600)' "$db"
    told worker_silent w1 ''
    cat w1.log | tail -5; stela doctor || true; stela check || true; time stela events append --stream a-1 --type a.b --data '{}' --publish || true
    stop transaction
  else
    start transaction "$postgres/psql" -h "$cluster" -U postgres shop -c 'BEGIN; SELECT txid_current(), pg_sleep(3000)'
    append 100
    published
    stop transaction
  fi
  append 20
  published
  well
  whole
}

partitions_resized() {
  begin 16
  start_worker w1
  start_worker w2
  append_for_long &
  local appending=$! count
  for count in 4 32; do
    sleep 0.5
    stela outbox partitions resize $count
  done
  wait $appending || fail 'appends failed meanwhile'
  published
  stela outbox partitions sync --prune
  well
  whole
}
append_for_long() {
  local i
  for i in $(seq "$(is_long_or 200 20)"); do append 100; done
}

same_worker_id() {
  begin 4
  start_worker w1
  append 100
  published
  local said status=0
  said=$(stela outbox work --id w1 --once 2>&1) || status=$?
  [ $status = 1 ] && [[ $said == *"a worker named 'w1' is alive"*"process ${pids[w1]}"*--id* ]] ||
    fail "a second w1 ends with $status: $said"
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
  orders place 1001 Ada lamp 1 100
  eventually has_timer || fail 'no timer'
  stop shop
  local due
  due=$(date -u -d '2 minutes ago' +%FT%TZ)
  moment=$(date -u -d '3 minutes ago' +%FT%T)
  stela timers move payment_deadline order-1001 remind_to_pay "$due"
  told process_overdue payment_deadline 'no runner drives it'
  dated
}
has_timer() { stela timers list | grep -q remind_to_pay; }
