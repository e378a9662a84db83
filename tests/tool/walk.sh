#!/usr/bin/env bash
# Runs the guide docs/guides/operate.md: its sh blocks in one shell, in their order; the text block
# behind one is what it must print, "…" standing for anything. What only looks is repeated until it
# shows what the guide says. Usage: walk.sh GUIDE FOLDER-OF-STELA
set -uo pipefail

guide=$(realpath "$1")
PATH=$(realpath "$2"):$PATH:/usr/sbin
for name in $(compgen -e STELA_); do unset "$name"; done

folder=$(mktemp -d)
cleanup() {
  # shellcheck disable=SC2046
  kill -9 $(jobs -p) 2>/dev/null
  rm -rf "$folder"
}
trap cleanup EXIT
cd "$folder" || exit 1

# A port that nobody listens on, in place of the one that the guide names.
for _ in $(seq 50); do
  port=$((20000 + RANDOM % 20000))
  (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
done

# Block by block: number.sh, and number.text where output is shown.
sed "s/4222/$port/g" "$guide" | awk '
  /^```sh$/   { kind = "sh"; number++; next }
  /^```text$/ { kind = "text"; next }
  /^```/      { kind = ""; next }
  kind        { print > sprintf("%03d.%s", number, kind) }'

matches() {
  local wanted=$1 shown=$2
  # shellcheck disable=SC2053
  [[ $shown == ${wanted//…/*} ]]
}

for block in [0-9]*.sh; do
  expected=${block%.sh}.text
  give_up=$((SECONDS + 60))
  while :; do
    # In this shell, as what it sets is needed later.
    . "./$block" >output 2>&1
    result=$?
    shown=$(grep -v -e '^\[' output || true)
    [ -f "$expected" ] || break
    matches "$(sed 's/[][\\*?]/\\&/g' "$expected")" "$shown" && break
    # Only a look may be repeated.
    grep -qvE '^stela outbox (workers|check|list|status)' "$block" && give_up=0
    if ((SECONDS >= give_up)); then
      printf 'This block of the guide:\n%s\nshould print:\n%s\nand printed (%d):\n%s\n' \
        "$(cat "$block")" "$(cat "$expected")" "$result" "$shown" >&2
      tail -n 20 ./*.log >&2
      exit 1
    fi
  done
done
echo "The walk ends where the guide says."
