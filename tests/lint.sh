#!/usr/bin/env bash
# Checks the sources without running them: formatting, includes between modules, links in the docs,
# lines of each module, and a small set of clang-tidy's checks. Prints nothing if all is well.
#   tests/lint.sh [formatting|includes|links|counts|tidy]…     all of them if none is named
# STELA_BUILD (build/dev): the build folder whose compile commands clang-tidy reads.
set -uo pipefail
cd "$(dirname "$0")/.."
build=${STELA_BUILD:-build/dev}

need() {
  command -v "$1" >/dev/null && return
  echo "$1 is missing: tool/install-packages.sh tests installs it" >&2
  return 1
}

formatting() {
  need clang-format || return
  find framework eventstore outbox projections tool samples tests packaging -name '*.[hc]pp' | xargs -P "$(nproc)" -n 50 clang-format --dry-run -Werror
}

includes() { tests/lint/includes.sh; }

counts() { tests/lint/counts.sh; }

links() { cmake "-DROOT=$PWD" -P tests/docs/check_links.cmake; }

tidy() { need clang-tidy && tests/lint/tidy.sh "$build"; }

[ $# -gt 0 ] || set -- formatting includes links counts tidy
status=0
for check in "$@"; do
  case $check in
    formatting | includes | links | counts | tidy)
      if ! said=$("$check" 2>&1); then
        printf '%s\n%s: failed\n' "$said" "$check" >&2
        status=1
      fi
      ;;
    *)
      echo "usage: tests/lint.sh [formatting|includes|links|counts|tidy]…" >&2
      exit 2
      ;;
  esac
done
exit $status
