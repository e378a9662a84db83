# To be sourced: the stage on which an incident plays, and what an operator does and is told there. Each
# incident has a folder, a broker, a database and workers of its own, in a shell of its own: the first
# thing that isn't as it should be ends it.

skipped=77
# How long something may take, in seconds, until it counts as missing.
patience=30

fail() {
  echo "${FUNCNAME[1]}: $*" >&2
  exit 1
}
skip() {
  echo "$*"
  exit "$skipped"
}

find_programs() {
  local folder
  for folder in "$source_folder"/build/{dev,ci,release}/bin; do
    [ -n "${STELA_PROGRAM:-}" ] || [ ! -x "$folder/stela" ] || STELA_PROGRAM=$folder/stela
    [ -n "${ORDERS_PROGRAM:-}" ] || [ ! -x "$folder/orders" ] || ORDERS_PROGRAM=$folder/orders
  done
  if [ ! -x "${STELA_PROGRAM:-}" ] || [ ! -x "${ORDERS_PROGRAM:-}" ]; then
    echo "run.sh: build stela and orders, or name them in STELA_PROGRAM and ORDERS_PROGRAM" >&2
    exit 2
  fi
  stela_program=$(realpath "$STELA_PROGRAM")
  orders_program=$(realpath "$ORDERS_PROGRAM")
  local name
  for name in $(compgen -e STELA_) ORDERS_DB; do unset "$name"; done
  PATH=$PATH:/usr/sbin
  # The system's own first: a wrapper around it takes longer than what it is asked.
  python=$(PATH=/usr/bin:$PATH command -v python3 || true)
  if [ -z "$python" ] || ! command -v nats-server >/dev/null; then
    echo "run.sh: nats-server or python3 is missing; tool/install-packages.sh tests installs them" >&2
    exit 2
  fi
}

# play ENGINE INCIDENT
play() {
  engine=$1
  code='' sentence='' remedy='' cause='' since='' chain=''
  trap 'exit 143' INT TERM
  trap leave EXIT
  folder=$work/$engine.$2
  mkdir "$folder"
  chmod 711 "$folder"
  cd "$folder"
  # So that a printed command runs as it is printed.
  mkdir bin
  ln -s "$stela_program" bin/stela
  ln -s "$orders_program" bin/orders
  PATH=$folder/bin:$PATH
  "$2"
}

# ---- Processes

declare -A pids=()

# start NAME COMMAND…: it is gone with this shell at the latest.
start() {
  setpriv --pdeathsig KILL "${@:2}" >>"$1.log" 2>&1 </dev/null &
  pids[$1]=$!
}

# stop NAME [SIGNAL]
stop() {
  [ -n "${pids[$1]:-}" ] || return 0
  kill "-${2:-TERM}" "${pids[$1]}" 2>/dev/null || true
  wait "${pids[$1]}" 2>/dev/null || true
  unset "pids[$1]"
}

leave() {
  local status=$? name
  trap '' INT TERM
  case $status in
    0 | 143 | "$skipped") ;;
    *) tail -n 5 "$folder"/*.log || true ;;
  esac
  # What is stopped or hangs is to end, too. The cluster has no state that anybody needs.
  # QUIT lets the database's server give its shared memory back.
  stop postgres QUIT
  for name in "${!pids[@]}"; do stop "$name" KILL; done
  ! mountpoint -q "$folder/disk" || umount -l "$folder/disk"
  cd "$work"
  rm -rf "$folder"
}

# eventually COMMAND…: until it succeeds.
eventually() {
  local end=$((SECONDS + patience))
  until "$@"; do
    ((SECONDS < end)) || return 1
    sleep 0.1
  done
}

# is_long_or A B: A in a long run, else B.
is_long_or() { [ -n "$is_long" ] && echo "$1" || echo "$2"; }

# ---- The broker

has_url() {
  url=$(sed -n 's/.*"\(nats:[^"]*\)".*/\1/p' ./*.ports 2>/dev/null | head -n 1 || true)
  [ -n "$url" ]
}

# start_broker: with the settings in nats.conf. After the first time at the port that it had.
start_broker() {
  rm -f nats-server.log
  if [ -z "${url:-}" ]; then
    start nats-server nats-server -c nats.conf -a 127.0.0.1 -p -1 --ports_file_dir "$folder"
    eventually has_url || { cat nats-server.log >&2; fail "nats-server didn't start"; }
    rm -f ./*.ports
  else
    start nats-server nats-server -c nats.conf -a 127.0.0.1 -p "${url##*:}"
  fi
  eventually grep -q 'Server is ready' nats-server.log || { cat nats-server.log >&2; fail "nats-server didn't start"; }
}
stop_broker() { stop nats-server; }

# jetstream COMMAND STREAM …: somebody at the broker.
jetstream() { "$python" "$here/jetstream.py" "$url" "$@"; }

# ---- The database

server_programs() {
  local place
  for place in /usr/lib/postgresql/{17,16,15}/bin; do
    [ ! -x "$place/postgres" ] || { echo "$place"; return; }
  done
}

# as_server COMMAND…: becomes it, in a shell of its own. The server refuses to run as root.
as_server() {
  local user=()
  [ "$(id -u)" != 0 ] || user=(--reuid=postgres --regid=postgres --clear-groups)
  # In a folder that the server's user may enter.
  cd "$cluster"
  exec setpriv "${user[@]}" "$@"
}

make_cluster() {
  postgres=$(server_programs)
  [ -n "$postgres" ] || skip "PostgreSQL is missing; tool/install-packages.sh postgres installs it"
  cluster=$folder/cluster
  mkdir "$cluster"
  [ "$(id -u)" != 0 ] || chown postgres "$cluster"
  (as_server "$postgres/initdb" -D "$cluster/data" -U postgres -A trust -E UTF8 --locale=C --no-sync) \
    >initdb.log 2>&1 || { cat initdb.log >&2; fail "no cluster"; }
}

start_database() {
  as_server --pdeathsig QUIT "$postgres/postgres" -D "$cluster/data" \
    -c listen_addresses= -c "unix_socket_directories=$cluster" >>postgres.log 2>&1 </dev/null &
  pids[postgres]=$!
  eventually "$postgres/pg_isready" -q -h "$cluster" -U postgres || { cat postgres.log >&2; fail "no server"; }
}

on_server() { "$postgres/$1" -h "$cluster" -U postgres "${@:2}"; }

make_database() {
  if [ "$engine" = sqlite ]; then
    db=${folder_of_database:-$folder}/shop.db
  else
    make_cluster
    start_database
    on_server createdb shop
    db="postgresql://postgres@/shop?host=$cluster"
  fi
}

# ---- A store and its workers

# Short leases and pauses: an incident is to be seen, not waited for.
write_settings() {
  (umask 022 && cat >stela.toml) <<END
db = "$db"

[store]
busy_timeout = "${busy_timeout:-5s}"

[outbox]
lease_ttl = "3s"
lease_renew = "1s"
heartbeat_ttl = "3s"
publish_timeout = "1s"
idle_backoff_ms = 100
retry_backoff = "${retry_backoff:-200ms}"
retry_backoff_max = "${retry_backoff:-2s}"

[nats]
url = "$url"
stream = "SHOP"
prefix = "shop"
ensure_stream = true
connect_timeout = "1s"
END
}

# begin PARTITIONS
begin() {
  printf 'max_payload: 64KB\njetstream { store_dir: "%s" }\n' "$folder/jetstream" >nats.conf
  start_broker
  make_database
  write_settings
  stela migrate
  stela outbox enable --partitions "$1"
  moment=$(now)
}

start_worker() {
  start "$1" stela outbox work --id "$1"
  eventually is_alive "$1" || fail "$1 doesn't begin: $(tail -n 1 "$1.log")"
}
is_alive() { stela outbox workers | grep -q "^$1 .* yes "; }

appended=0
# events N: lines to append to 20 streams.
events() {
  seq $((appended + 1)) $((appended + $1)) | awk '{
    printf "{\"stream\":\"order-%d\",\"type\":\"order.noted\",\"publish\":true,\"data\":{\"n\":%d}}\n", $1 % 20, $1 }'
}
append() {
  events "$1" | stela events append --stdin --batch 100 >appended.log || fail "$(tail -n 1 appended.log)"
  appended=$((appended + $1))
}

is_published() { stela outbox check --max-pending 0 --max-parked 0 >/dev/null; }
is_nothing_pending() { stela outbox status --json | grep -q '"pending":0,'; }
# published: everything that was appended.
published() { eventually is_published || fail "not all is published: $(stela outbox status)"; }
# published_meanwhile: everything that isn't parked, whatever else is wrong.
published_meanwhile() { eventually is_nothing_pending || fail "messages wait: $(stela outbox status)"; }

# ---- What an operator is told

now() { date -u +%FT%T; }

# ask CODE SUBJECT: the first of these findings that `stela check` has, by patterns as case has them:
# its code, subject, time, sentence, remedy, and the code of its cause.
ask() {
  checked=$(stela check --format json) || true
  answer=$("$python" -ISc '
import fnmatch, json, sys
code, subject, checked = sys.argv[1:]
for one in json.loads(checked).get("findings") or []:
    if fnmatch.fnmatchcase(one["code"], code) and fnmatch.fnmatchcase(one["subject"] or "", subject):
        cause = one["caused_by"] or {"code": ""}
        print(one["code"], one["subject"] or "", (one["since_at"] or "")[:19], one["sentence"], one["remedy"],
              cause["code"], sep="\x1f")
        break
else:
    sys.exit(1)' "$1" "$2" "$checked")
}

# told CODE SUBJECT TEXT [CAUSE]: the check says so, with this text in its sentence or its remedy. The
# code of its cause, if one is given.
told() {
  eventually ask "$1" "$2" || fail "'stela check' has no $1 of '$2', but: $checked"
  IFS=$'\x1f' read -r code subject since sentence remedy cause <<<"$answer"
  [[ $sentence$remedy == *"$3"* ]] || fail "$code doesn't say '$3', but: $sentence → $remedy"
  [ -z "${4:-}" ] || [ "$cause" = "$4" ] || fail "$code is caused by '$cause', not by $4: $checked"
  echo "$code $subject: $sentence → $remedy"
}

# dated [TIME]: what was told last has its beginning, between this one, or else the moment before the
# incident, and now.
dated() {
  local begin=${1:-$moment} end
  end=$(now)
  [[ ! $since < $begin && ! $since > $end ]] ||
    fail "$code of '$subject' began at '$since', not between $begin and $end"
}
# dated_by_heartbeat: a silence begins with the last heartbeat, which is older than the moment, and
# younger than `heartbeat_ttl` then.
dated_by_heartbeat() { dated "$(date -u -d "${moment}Z - 3 seconds" +%FT%T)"; }

has_no() { ! ask "$1" "$2"; }
# gone CODE SUBJECT
gone() { eventually has_no "$1" "$2" || fail "'stela check' still has it: $checked"; }
# Nothing at all is wrong.
well() { gone '*' '*'; }

# why SUBJECT BEGIN [CAUSE…]: the chain begins so, and each cause is said below. Without a subject it is
# the worst that is wrong.
why() {
  local said cause
  chain=
  said=$(stela why ${1:+"$1"} 2>&1) || true
  [[ $said == "$2"* ]] || fail "'stela why $1' doesn't begin with '$2', but: $said"
  for cause in "${@:3}"; do
    [[ $said == *$'\n'"← "*"$cause"* ]] || fail "'stela why $1' doesn't name '$cause' as a cause: $said"
  done
  echo "$said"
  chain=$said
}
# said TEXT: so does the last chain.
said() { [[ $chain == *"$1"* ]] || fail "'stela why' doesn't say '$1', but: $chain"; }

# doctor_says TEXT
doctor_says() {
  local said
  said=$(stela doctor) || true
  [[ $said == *"$1"* ]] || fail "'stela doctor' doesn't say '$1', but: $(grep -v '^ok' <<<"$said")"
}

# advised TEXT: the remedy of what was told last.
advised() { [[ $remedy == *"$1"* ]] || fail "$code advises no '$1', but: $remedy"; }

# pasteable: each command in the sentence begins with its program, as in the remedy.
pasteable() {
  [[ ! $sentence =~ \'(outbox|projections|timers|inbox)\ [^\']*\' ]] ||
    fail "$code says ${BASH_REMATCH[0]}, which can't be run as it is printed"
}

# follow COMMAND [ARGUMENT…]: does what was advised, as it is printed; the arguments are what it asks.
follow() {
  advised "'$1'"
  echo "\$ $*"
  # shellcheck disable=SC2086
  $1 "${@:2}" || fail "'$*' failed with $?"
}

# follow_why SUBJECT COMMAND [ARGUMENT…]: does what 'stela why' advises.
follow_why() {
  remedy=$(stela why "$1") || true
  code="'stela why $1'"
  follow "${@:2}"
}

# known_gap CHECK…: what should be so, and isn't yet. Delete the word, and it is a check.
known_gap() {
  local said patience=${gap_patience:-1}
  if said=$("$@" 2>&1); then
    echo "no gap: '$*' holds; delete the word known_gap before it"
  else
    echo "known gap: $(tr '\n' ' ' <<<"$said")"
  fi
}

# Nothing was lost: not in the database, and not at the broker.
whole() {
  local said
  said=$(stela verify 2>&1) && [[ $said == *"no problem"* ]] || fail "verify: $said"
  said=$(stela outbox reconcile --against-broker --dry-run 2>&1) && [[ $said == *"None is missing"* ]] ||
    fail "reconcile: $said"
  echo "$said"
}
