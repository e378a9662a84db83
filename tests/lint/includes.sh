#!/usr/bin/env bash
# Checks the include graph: which module may include which, and where library headers may be
# included.
# Usage: includes.sh [ROOT]
set -euo pipefail
cd "${1:-$(dirname "$0")/../..}"
folders=(framework eventstore outbox projections tool samples)

{ find "${folders[@]}" -name '*.hpp' -printf 'file %p\n'
  grep -rnE --include='*.hpp' --include='*.cpp' '^ *#include *[<"]' "${folders[@]}" |
    sed -E 's/^([^:]+):([0-9]+): *#include *([<"][^>"]+).*/include \1 \2 \3/'
} | awk '
  BEGIN {
    # The modules whose public headers a folder may include, including its own.
    may["framework"] = "framework"
    may["framework/testing"] = "framework testing"
    may["eventstore"] = "framework eventstore"
    may["outbox"] = "framework eventstore outbox"
    may["outbox/nats"] = "framework eventstore outbox nats"
    may["projections"] = "framework eventstore projections"
    may["projections/testing"] = "framework testing eventstore projections projections_testing"
    may["tool"] = "framework eventstore outbox nats projections tool"
    may["samples"] = "framework eventstore outbox nats projections tool testing"
    # The folders that may include headers of eventstore/database. Headers in database/sqlite and
    # database/postgres are only for folders written for that engine.
    split("outbox outbox/nats projections", names); for (i in names) shares[names[i]] = 1
    for_sqlite = "^projections/src/sqlite/"
    for_postgres = "^projections/src/postgres/"
    # The folders that may include SQLite-only headers; others use stela/eventstore/store.hpp.
    places["stela/eventstore(/(sqlite|sqlite_care|sqlite_handle|detail/sqlite_settings))?\\.hpp"] = \
      "eventstore/ projections/src/sqlite/ projections/testing/src/ tool/ samples/"
    places["stela/eventstore/(postgres|detail/postgres_settings|detail/postgres_status)\\.hpp"] = "eventstore/ tool/ samples/"
    # The folders that may include the header of a library.
    places["sqlite3\\.h"] = "eventstore/ tool/ samples/"
    places["libpq-fe\\.h"] = "eventstore/"
    places["nats/nats\\.h"] = "outbox/nats/src/ samples/"
    places["boost/signals2/"] = "framework/src/"
    places["boost/crc\\.hpp"] = "outbox/src/"
    places["boost/(asio|beast)/"] = "tool/src/ eventstore/include/stela/asio.hpp projections/include/stela/projections/asio.hpp"
    places["sodium\\.h"] = "framework/src/ eventstore/keys/"
    places["simdjson\\.h"] = "framework/src/ eventstore/src/"
    places["xxhash\\.h"] = "eventstore/database/"
    places["date/"] = "projections/src/"
    places["toml"] = "tool/src/"
    places["(n?curses|term)\\.h"] = "tool/src/"
  }
  function complain(text) { print file ":" line ": " text; wrong = 1 }
  function folder_of(path) {
    if (path ~ /^framework\/testing\//) return "framework/testing"
    if (path ~ /^outbox\/nats\//) return "outbox/nats"
    if (path ~ /^projections\/testing\//) return "projections/testing"
    return substr(path, 1, index(path, "/") - 1)
  }
  function among(word, list) { return index(" " list " ", " " word " ") > 0 }
  function check_module(header,   folder, module) {
    split(header, part, "/"); module = part[2]; folder = folder_of(file)
    if (header !~ /^stela\/[a-z_]+\//) return
    if (!among(module, may[folder])) complain(folder " may not include <" header ">, only modules " may[folder])
  }
  function check_library(header,   pattern, place, n, i) {
    for (pattern in places) {
      if (header !~ ("^" pattern)) continue
      n = split(places[pattern], place, " ")
      for (i = 1; i <= n; i++) if (index(file, place[i]) == 1) return
      complain("<" header "> may only be included in " places[pattern])
    }
  }
  function check_own(header,   folder, beside) {
    folder = folder_of(file); beside = file; sub(/[^\/]*$/, "", beside)
    if (file ~ /\/include\//) complain("a public header includes \"" header "\", which is not installed")
    if (header ~ /_sql(\.hpp$|\/)/ || (beside header) in exists || (folder "/src/" header) in exists) return
    if (header ~ /^(database|follow)\// && ("eventstore/" header) in exists) {
      if (folder == "eventstore") return
      if (folder in shares && (header !~ /^database\/postgres\// || file ~ for_postgres) &&
          (header !~ /^database\/sqlite\// || file ~ for_sqlite)) return
    }
    if (file ~ /^eventstore\/ledger\// && header ~ /^(sqlite|postgres)\//)
      complain("a law of the log includes \"" header "\", which is of one engine")
    if (folder == "eventstore" && header ~ /^(keys|ledger|tenants)\// && ("eventstore/" header) in exists) return
    if (header == "tenants/shifts.hpp" && folder in shares) return
    if (folder == "outbox/nats" && header == "byte_window.hpp") return
    if (folder == "tool" && header == "database/partial_file.hpp") return
    complain("\"" header "\" is not a header of " folder)
  }
  $1 == "file" { exists[$2] = 1; next }
  { file = $2; line = $3; header = substr($4, 2); count++ }
  $4 ~ /^"/ { check_own(header); next }
  header ~ /^stela\// { check_module(header) }
  { check_library(header) }
  END {
    if (count < 1000) { print "only " count " includes found: the search is broken"; wrong = 1 }
    exit wrong
  }'
