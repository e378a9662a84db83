# To be sourced: a shop's store in the middle of an incident, made by real means, with a broker and workers.
# $programs: the folder of `stela` and `orders`. $work: a folder of its own. $DB: the store, a file or URL.

stela() { "$programs/stela" "$@" --db "$DB"; }
orders() { ORDERS_DB=$DB ORDERS_KEYS=$work/shop.keys "$programs/orders" "$@"; }
run_sql() {
  case $DB in
    postgresql:*) PGOPTIONS='-c search_path=stela' psql -q -v ON_ERROR_STOP=1 "$DB" ;;
    *) sqlite3 -cmd ".timeout 5000" "$DB" ;;
  esac
}

eventually() {  # COMMAND…: for ten seconds
  for _ in $(seq 200); do ! "$@" || return 0; sleep 0.05; done
  echo "store.sh: this didn't come true: $*" >&2
  return 1
}

has_url() { url=$(sed -n 's/.*"\(nats:[^"]*\)".*/\1/p' "$work"/*.ports 2>/dev/null | head -n 1); [ -n "$url" ]; }

start_nats() {
  printf 'max_payload: 4000\n' >"$work/nats.conf"
  PATH="$PATH:/usr/sbin" nats-server -c "$work/nats.conf" -a 127.0.0.1 -p -1 -js -sd "$work/jetstream" \
    --ports_file_dir "$work" >"$work/nats.log" 2>&1 &
  eventually has_url
}

worker_options() { echo --nats "$url" --stream SHOP --prefix shop --ensure-stream --silent; }

append() {  # STREAM TYPE DATA [OPTION…]
  local stream=$1 type=$2 data=$3
  shift 3
  stela events append --stream "$stream" --type "$type" --publish --leave-behind --data "$data" "$@" >/dev/null
}

long_text() { printf "$1%.0s" $(seq "$2"); }

# Text that means something to a browser, to a terminal or to a reader from right to left.
append_strange_texts() {
  local script="<script>document.title='broken'</script>" image='<img src=x onerror=alert(1)>'
  append "note-$script" note.taken "{\"text\":\"$script\",\"$image\":\"&amp;\"}" --correlation "$script" --actor "$image"
  append 'note-שלום/עולם' note.taken '{"text":"שלום עולם, \u202Etxt.exe"}' --correlation 'שלום עולם' --actor 'דוד'
  append "note-$(long_text x 190)" "note.$(long_text y 120)" "{\"$(long_text k 200)\":\"$(long_text v 300)\"}" \
    --correlation "$(long_text c 128)"
}

# The last day, minute by minute, with a gap in which nobody looked.
note_history() {
  local now=$(($(date +%s) / 60))
  run_sql <<SQL
DELETE FROM stela_samples;
INSERT INTO stela_series (name)
SELECT p.name || f.figure FROM (SELECT DISTINCT name FROM projections WHERE kind <> 'inline') p,
  (SELECT '.position_total' AS figure UNION SELECT '.lag_ms') f
WHERE p.name || f.figure NOT IN (SELECT name FROM stela_series);
WITH RECURSIVE minutes(m) AS (SELECT 0 UNION ALL SELECT m + 1 FROM minutes WHERE m < 1500),
  noted(m) AS (SELECT m FROM minutes WHERE m NOT BETWEEN 28 AND 33 AND m NOT BETWEEN 500 AND 620),
  head(h) AS (SELECT max(sequence) FROM events)
INSERT INTO stela_samples
SELECT s.series, $now - m, CASE s.name
  WHEN 'store.head_total' THEN h - m * 1500 - (m * 37 % 23) * 30 - (m / 120 % 3) * (m % 120) * 5
  WHEN 'outbox.published_total' THEN h - m * 1300 - (m * 41 % 19) * 30 - CASE WHEN m < 17 THEN (17 - m) * -200 ELSE 3400 END
  WHEN 'outbox.failed_total' THEN CASE WHEN m < 18 THEN 30 ELSE 12 END
  WHEN 'outbox.pending' THEN CASE WHEN m < 17 THEN (17 - m) * 300 ELSE m % 5 END
  WHEN 'outbox.lag_ms' THEN CASE WHEN m < 17 THEN (17 - m) * 60000 ELSE (m * 53) % 900 + CASE WHEN m % 97 = 0 THEN 40000 ELSE 0 END END
  WHEN 'outbox.workers' THEN 2
  ELSE CASE WHEN s.name LIKE '%.position_total' THEN h - m * 900 - (m * 37 % 23) * 40
    WHEN s.name LIKE '%.lag_ms' THEN CASE WHEN m BETWEEN 9 AND 20 THEN (21 - m) * 4000 ELSE m * 31 % 700 END
    ELSE 0 END END
FROM noted, stela_series s, head;
SQL
}

make_store() {
  orders migrate >/dev/null
  orders import "$source_folder/samples/orders/history.jsonl" >/dev/null
  orders receive lamp 40 >/dev/null
  orders register 1 Ada 'Ferry Road 4' >/dev/null
  orders register 2 Grace 'Mill Lane 17' >/dev/null
  orders place 1001 1 lamp 2 4200 >/dev/null
  orders place 1002 2 lamp 3 6300 >/dev/null
  orders pay 1001 visa-77 >/dev/null
  orders decline 1002 'card expired' >/dev/null
  ORDERS_MINUTE_MS=1 orders place 1003 1 lamp 1 2100 >/dev/null
  orders work "$url" --until-empty >/dev/null
  orders load 200 >/dev/null
  orders work "$url" --until-empty >/dev/null
  stela outbox partitions resize 8 >/dev/null
  # Parked, alike and in three streams; with what came after in one of them.
  local order
  for order in 91 92 93; do append "mail-$order" mail.requested "{\"body\":\"$(long_text m 5000)\"}"; done
  append mail-91 mail.requested '{"body":"short"}'
  append_strange_texts
  stela outbox work $(worker_options) --until-empty >/dev/null 2>&1
  note_history
  stela findings ack outbox_parked --why 'the mail team raises the limit on Monday' --for 72h >/dev/null
}

# The incident: a message that the broker refuses stops its partition.
break_store() {
  orders place 1005 2 lamp 1 2100 >/dev/null
  append order-1005 invoice.requested "{\"customer\":\"Linus\",\"document\":\"$(long_text d 5000)\"}"
  append order-1005 invoice.sent '{"customer":"Linus"}'
}

start_workers() {
  local name
  for name in w1 w2; do
    stela outbox work $(worker_options) --id "$name" --set outbox.on_poison=stop >"$work/$name.log" 2>&1 &
  done
}

is_broken() { stela outbox status --json | grep -q '"stopped":1'; }
