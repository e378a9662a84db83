#!/usr/bin/env bash
# Follows a page as a reader would, in a new folder: a block whose first line is a comment with a
# file's name becomes that file, ```sh blocks are run, and a ```text block behind one is what it must
# have printed (… stands for anything). A block behind <!-- not run: why --> is left out.
# Usage: follow.sh PAGE PREFIX, where PREFIX is where Stela is installed.
set -euo pipefail
page=$(realpath "$1")
prefix=$2
folder=$(mktemp -d)

finish() {
  local running
  running=$(jobs -p)
  [ -z "$running" ] || kill $running 2>/dev/null || true
  wait 2>/dev/null || true
  rm -rf "$folder"
}
trap finish EXIT

# A port that nobody uses, for the one that the page names.
port=$((20000 + RANDOM % 20000))
while (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do port=$((port + 1)); done

export CMAKE_PREFIX_PATH=$prefix CMAKE_GENERATOR=Ninja PATH=$prefix/bin:$PATH:/usr/sbin
mkdir "$folder/there"
cd "$folder/there"
printed=$folder/printed
: >"$printed"

fail() {
  echo "$page, line $number: $1" >&2
  exit 1
}

compare() {
  local expected=$1 pattern
  pattern=$(sed -e 's/[][\.*^$+?(){}|/]/\\&/g' -e 's/…/.*/g' "$expected")
  local i=0 line
  # A slow machine sees progress, which pages don't show.
  mapfile -t lines < <(sed -E '/^[a-z_ ]+ [0-9,]+( of [0-9,]+)? [a-z ]+, .*[0-9,]+\/s(, .* left)?$/d' "$printed")
  while IFS= read -r line; do
    [[ ${lines[$i]-} =~ ^$line$ ]] || fail "expected '$(sed -n "$((i + 1))p" "$expected")', got '${lines[$i]-}'"
    i=$((i + 1))
  done <<<"$pattern"
  [ "$i" -eq "${#lines[@]}" ] || fail "more was printed: '${lines[$i]}'"
}

block() {  # language, file with the block
  case $1 in
    sh)
      # In this shell, so that what is started in the background is known here.
      source "$2" >"$printed" 2>&1 || fail "the command failed: $(cat "$printed")"
      ;;
    text) compare "$2" ;;
    cpp | cmake)
      local first name
      first=$(head -n 1 "$2")
      name=$(sed -n 's,^\(//\|#\) \([A-Za-z_]*\.\(cpp\|hpp\|txt\)\)$,\2,p' <<<"$first")
      [ -n "$name" ] || fail "the block doesn't say which file it is"
      cp "$2" "$name"
      ;;
    *) fail "a block in '$1' can't be followed" ;;
  esac
}

number=0
language=
leave_out=
while IFS= read -r line; do
  number=$((number + 1))
  line=${line//4222/$port}
  if [ -n "$language" ]; then
    if [ "$line" = '```' ]; then
      [ -n "$leave_out" ] || block "$language" "$folder/block"
      language=
      leave_out=
    else
      printf '%s\n' "$line" >>"$folder/block"
    fi
  elif [[ $line == '```'* ]]; then
    language=${line#'```'}
    : >"$folder/block"
  elif [[ $line == '<!-- not run: '* ]]; then
    leave_out=yes
  fi
done <"$page"
