# To be sourced: shows how far a build or a run of tests is. On a terminal one line moves; elsewhere
# there is a line for each tenth. Times are those since the script began.

# minutes: the time since the script began, as 3:07.
minutes() { printf '%3d:%02d' $((SECONDS / 60)) $((SECONDS % 60)); }

# stage TEXT: names what comes next.
stage() { echo "$(minutes)  $1"; }

# show_progress TEXT: reads the output of ninja or ctest, and shows its counts after TEXT. The lines
# that aren't counts of what went well are passed on.
show_progress() {
  local text=$1 line done=0 all=0 tenth=0 shown='' moves=no
  [ -t 1 ] && moves=yes
  while IFS= read -r line || [ -n "$line" ]; do
    if [[ $line =~ ^\[([0-9]+)/([0-9]+)\]\  ]] ||
       [[ $line =~ ^\ *([0-9]+)/([0-9]+)\ Test\ .*\ Passed\  ]]; then
      done=${BASH_REMATCH[1]} all=${BASH_REMATCH[2]}
      if [ $moves = yes ]; then
        shown=$(printf '%s  [%*d/%d] %s' "$(minutes)" ${#all} "$done" "$all" "$text")
        printf '\r\033[K%s' "${shown:0:${COLUMNS:-80}}"
      elif ((done * 10 / all > tenth)); then
        tenth=$((done * 10 / all))
        echo "$(minutes)  [$done/$all] $text"
      fi
    elif ! [[ $line =~ ^\ *(Start\ +[0-9]+:|$) ]]; then
      [ -z "$shown" ] || printf '\r\033[K'
      shown=
      printf '%s\n' "$line"
    fi
  done
  [ -z "$shown" ] || printf '\r\033[K'
}
