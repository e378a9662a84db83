#!/usr/bin/env bash
# Tells the story of the order application on a new database, with its own nats-server on loopback.
# Leaves nothing running. `run.sh` builds the application first.
# Usage: story.sh FOLDER-OF-PROGRAMS [--postgres] [--keep] [--load N | --console | --tenants]
#        story.sh --check …: only looks at the options
#   --postgres  on a PostgreSQL cluster of its own, which it starts and removes
#   --keep      leave the data for exploring, and say where it is
#   --load N    place N orders instead, and say how fast that was
#   --console   place orders instead, some of them in vain, and show it all in a browser until Ctrl-C
#   --tenants   tell the story of a chain of three shops instead, each with a store of its own
set -euo pipefail

programs=${1:?"usage: story.sh FOLDER-OF-PROGRAMS [--postgres] [--keep] [--load N | --console | --tenants]"}
shift
arguments=("$@")
postgres=
keep=
load=
console=
tenants=
while [ $# -gt 0 ]; do
  case $1 in
    --postgres) postgres=yes ;;
    --keep) keep=yes ;;
    --load)
      load=${2:-}
      case $load in '' | *[!0-9]*) echo "--load needs a number of orders" >&2; exit 2 ;; esac
      shift ;;
    --console) console=yes ;;
    --tenants) tenants=yes ;;
    *) echo "unknown option '$1'; there are --postgres, --keep, --load N, --console and --tenants" >&2; exit 2 ;;
  esac
  shift
done
if [ -n "$postgres" ] && [ -n "$keep" ]; then
  echo "--keep goes with SQLite: the cluster ends with the story" >&2
  exit 2
fi
if [ -n "$postgres" ] && [ -n "$tenants" ]; then
  echo "--tenants tells its story on SQLite" >&2
  exit 2
fi
[ "$programs" != --check ] || exit 0
. "$(dirname "$0")/../tool/processes.sh"
# The cluster exists while this script runs again inside with-postgres.sh.
if [ -n "$postgres" ] && [ -z "${STORY_HAS_CLUSTER:-}" ]; then
  export STORY_HAS_CLUSTER=yes
  exec "$(dirname "$0")/with-postgres.sh" "$0" "$programs" "${arguments[@]}"
fi

history=$(cd "$(dirname "$0")" && pwd)/orders/history.jsonl
work=$(mktemp -d)
worker=
stop() {  # a pid of ours
  [ -z "$1" ] || { kill "$1" 2>/dev/null && wait "$1" 2>/dev/null; } || true
}
finish() {
  local job
  # Cleans up only once.
  trap '' INT TERM
  for job in $(jobs -p); do stop "$job"; done
  if [ -n "$keep" ]; then
    echo "The data is in $work: ORDERS_DB=$work/shop.db $programs/orders --help"
  else
    rm -rf "$work"
  fi
}

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
[ -t 1 ] && [ -z "${NO_COLOR:-}" ] || say() { printf '\n%s\n' "$*"; }
orders() {
  local shown=() argument
  for argument in "$@"; do
    case $argument in *' '*) shown+=("'$argument'") ;; *) shown+=("$argument") ;; esac
  done
  echo "\$ orders ${shown[*]}"
  "$programs/orders" "$@"
}

# eventually COMMAND…: waits until the command succeeds, for at most ten seconds.
eventually() {
  for _ in $(seq 200); do
    ! "$@" || return 0
    sleep 0.05
  done
  return 1
}

has_url() {
  url=$(sed -n 's/.*"\(nats:[^"]*\)".*/\1/p' "$work"/*.ports 2>/dev/null | head -n 1 || true)
  [ -n "$url" ]
}

start_nats() {
  local nats
  if ! nats=$(PATH="$PATH:/usr/sbin" command -v nats-server); then
    echo "story.sh: nats-server isn't there; tool/install-packages.sh installs it" >&2
    exit 1
  fi
  # Below one megabyte only for the console, because the refused message is an argument of a
  # command.
  printf '%s' "${console:+max_payload: 16384}" >"$work/nats.conf"
  "$nats" -c "$work/nats.conf" -a 127.0.0.1 -p -1 -js -sd "$work/jetstream" --ports_file_dir "$work" \
    >"$work/nats.log" 2>&1 &
  url=
  ! eventually has_url || return 0
  echo "nats-server didn't start:" >&2
  cat "$work/nats.log" >&2
  exit 1
}

start_worker() {
  "$programs/orders" work "$url" >>"$work/worker.log" 2>&1 &
  worker=$!
}

# The worker prints a line whenever it has published messages.
has_published() {
  [ "$(wc -l <"$work/worker.log")" -ge 3 ]
}

was_cancelled() {
  "$programs/orders" show "$1" | grep -q 'order.cancelled'
}

has_placed() {
  [ "$("$programs/orders" events stats)" != "$placed" ]
}

shipping() {
  echo "\$ shipping parcels.db $url shop.keys $*"
  "$programs/shipping" "$work/parcels.db" "$url" "$ORDERS_KEYS" "$@"
}

# files_with WORD: the number of files in this story's folder that contain WORD.
files_with() {
  { grep -rlF -- "$1" "$work" || true; } | wc -l
}

# The same without the broker's files.
files_with_but_broker() {
  { grep -rlF --exclude-dir=jetstream -- "$1" "$work" || true; } | wc -l
}

story() {
  say "An old shop's history, written by the first version of the program, is imported."
  orders migrate
  orders import "$history"
  orders events list
  echo "Its events are of version 1; the program sees them as version 2, with a currency:"
  orders streams state order-902

  say "Ten lamps, and three orders. Each changes two aggregates, the order and the stock, or neither."
  orders receive lamp 10
  orders register 1 Ada 'Mill Lane 17'
  orders register 2 Grace 'Ferry Road 4'
  orders place 1001 1 lamp 2 4200
  orders place 1002 2 lamp 3 6300
  orders place 1003 2 lamp 6 12600 || true
  echo "The stock is projected inline, in the same transaction:"
  orders list stock

  say "The payment provider speaks: one paid, one declined. A worker reacts, relays and projects."
  orders pay 1001 visa-77
  orders decline 1002 'card expired'
  orders work "$url" --until-empty
  echo "What is paid has shipped; what isn't was cancelled, and its stock came back:"
  orders show 1001
  orders show 1002
  orders list stock

  say "The message as it stands in JetStream: the stored bytes, and headers that say where from."
  orders wire "$url" 4

  say "The shipping service, another program with another database, takes what concerns it."
  shipping
  echo "It forgets its position and reads everything once more, and no second parcel goes out."
  shipping --again

  say "1,000 more orders, and in their middle the worker is killed with -9."
  start_worker
  orders load 1000 &
  local loading=$!
  eventually has_published || { cat "$work/worker.log" >&2; return 1; }
  kill -9 "$worker"
  wait "$worker" 2>/dev/null || true
  worker=
  wait "$loading"
  echo "The worker had $(tail -n 1 "$work/worker.log"), then it was gone."
  echo "Another one continues there as soon as the lease has ended:"
  orders work "$url" --until-empty
  orders wire "$url"

  say "A customer doesn't pay. An order waits for 15 minutes; here a minute takes a tenth of a second."
  export ORDERS_MINUTE_MS=100
  orders place 1004 2 lamp 1 2100
  orders work "$url" --until-empty
  orders timers list --key order-1004
  start_worker
  eventually was_cancelled 1004 || { cat "$work/worker.log" >&2; return 1; }
  stop "$worker"
  worker=
  unset ORDERS_MINUTE_MS
  echo "Reminded, then cancelled, and the lamp is back:"
  orders show 1004
  orders list stock
  orders processes list

  say "Names and addresses are sealed, here and at the broker. Only who has the keys reads them."
  orders register 5 Margaret 'Castle Street 9'
  orders place 1005 5 lamp 1 2100
  orders pay 1005 visa-88
  orders work "$url" --until-empty
  orders show 1005
  shipping

  say "She wants to be forgotten: her key is destroyed, and then the key around all keys is made anew."
  [ -n "$postgres" ] || orders backup "$work/backup.db"
  orders privacy forget customer-5 --keys "$ORDERS_KEYS" --reason 'ticket 4711' --yes
  orders show 1005
  orders work "$url" --until-empty
  orders privacy rotate --keys "$ORDERS_KEYS"
  orders privacy report customer-5 --keys "$ORDERS_KEYS"
  echo "Files with her name, among databases, backup, logs and the broker's: $(files_with Margaret)"

  say "The outbox and the read models, as the tool that is built in shows them."
  orders outbox status
  orders projections status

  say "The next release counts pieces, too. Its sales are built beside the living ones, under load."
  orders list sales
  start_worker
  placed=$("$programs/orders" events stats)
  orders load 300 >"$work/load.log" 2>&1 &
  loading=$!
  # The old release can't start once the next release's tables serve.
  eventually has_placed || { cat "$work/load.log" >&2; return 1; }
  orders --next rebuild sales_per_day
  wait "$loading" || { cat "$work/load.log" >&2; return 1; }
  stop "$worker"
  worker=
  orders --next work "$url" --until-empty
  orders --next list sales
  echo "Nothing was published but what was placed meanwhile:"
  orders --next wire "$url"

  say "What an order was before."
  orders --next at 1002 1
  orders --next at 1002 2

  say "What to look at next"
  cat <<'END'
  samples/orders/order.hpp        the order: events, state, rules; and an event in its second version
  samples/orders/customer.hpp     what is personal, and can be forgotten
  samples/orders/shop.cpp         two aggregates and one transaction
  samples/orders/fulfilment.hpp   the process that ships what is paid, and gives back what isn't
  samples/orders/deadline.hpp     the process that cancels what isn't paid in time
  samples/orders/read_models.hpp  the tables that the shop reads
  samples/shipping/main.cpp       a consumer whose effect happens once
  docs/tutorial.md                the same from an empty folder
  samples/run.sh --keep           leaves the data; samples/run.sh --load 100000 shows how fast it is
  samples/run.sh --postgres       the same on a PostgreSQL server
  samples/run.sh --console        what a browser shows of it, under a small load
  samples/run.sh --tenants        a chain of shops, each with a store of its own
END
}

# A shop's daily work. Now and then a message is too large for the broker.
keep_shop() {
  local order letter
  letter=$(printf '%020000d' 0)
  "$programs/orders" register 1 Ada 'Mill Lane 17' >"$work/shop.log"
  for order in $(seq 2001 99999); do
    "$programs/orders" place "$order" 1 lamp 1 2100
    case $((order % 3)) in
      0) "$programs/orders" pay "$order" "visa-$order" ;;
      1) "$programs/orders" decline "$order" 'card expired' ;;
    esac
    if [ $((order % 12)) -eq 0 ]; then
      "$programs/orders" events append --stream "letter-$order" --type letter.written --publish \
        --data "{\"text\": \"$letter\"}"
    fi
    sleep 0.4
  done >>"$work/shop.log" 2>&1
}

show_console() {
  say "A shop under a small load. Its broker refuses some letters: see why, and what is parked."
  orders migrate
  orders import "$history"
  orders receive lamp 100000
  start_worker
  keep_shop &
  orders serve --db shop="$ORDERS_DB" --nats "$url" --stream SHOP --prefix shop --listen 0
}

# in_shop NAME COMMAND…: a command for one shop.
in_shop() {
  export STELA_TENANT=$1
  shift
  echo -n "[$STELA_TENANT] "
  orders "$@"
  unset STELA_TENANT
}

# The worker names a shop whose messages it has published.
has_published_for() {
  grep -q "^$1: published" "$work/worker.log"
}

tell_of_tenants() {
  local shop
  export STELA_TENANTS="$work/tenants.db"
  say "A chain of three shops. Each is a tenant: a store and keys of its own, and a registry knows them all."
  orders tenants init --at 'shops/{tenant}.db' --keys-at 'keys/{tenant}.keys'
  orders tenants create north south east
  ls "$work/shops"

  say "Each sells. One worker serves all of them."
  "$programs/orders" work "$url" >"$work/worker.log" 2>&1 &
  worker=$!
  for shop in north south east; do
    in_shop "$shop" receive lamp 10
    in_shop "$shop" register 1 "Ada of $shop" 'Mill Lane 17'
    in_shop "$shop" place 1001 1 lamp 2 4200
    in_shop "$shop" pay 1001 visa-77
  done
  for shop in north south east; do
    eventually has_published_for "$shop" || { cat "$work/worker.log" >&2; return 1; }
  done
  echo "The worker says:"
  cat "$work/worker.log"
  in_shop south show 1001
  orders tenants status

  say "The shop in the east doesn't pay its rent: its orders are refused, in every program."
  orders tenants suspend east --reason 'rent of June'
  in_shop east place 1002 1 lamp 1 2100 || true
  in_shop north place 1002 1 lamp 1 2100

  say "It pays, and goes on."
  orders tenants resume east
  in_shop east place 1002 1 lamp 1 2100

  say "The shop in the south closes for good: its store and its keys go, and the others stay."
  orders tenants drop south --reason closed --grace 0s
  orders tenants erase south --confirm south
  orders tenants list
  ls "$work/shops" "$work/keys"
  orders tenants each -- verify
  stop "$worker"
  worker=
  echo "Files with the name of its customer, but for the broker's: $(files_with_but_broker 'Ada of south')"
}

tell() {
  at_end finish
  start_nats
  export ORDERS_DB="$work/shop.db" ORDERS_KEYS="$work/shop.keys"
  [ -z "$postgres" ] || ORDERS_DB=$SHOP
  if [ -n "$tenants" ]; then
    tell_of_tenants
  elif [ -n "$console" ]; then
    show_console
  elif [ -n "$load" ]; then
    start_worker
    orders load "$load"
    stop "$worker"
    orders work "$url" --until-empty
    orders wire "$url"
  else
    story
  fi
}
run tell
