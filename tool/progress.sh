# Source this file. Shows the progress of a build or a test run: on a terminal one changing line,
# elsewhere a line for each tenth. Times count from the start of the script.

# minutes: the time since the script began, as 3:07.
minutes() { printf '%3d:%02d' $((SECONDS / 60)) $((SECONDS % 60)); }

# stage TEXT: names the next stage.
stage() { echo "$(minutes)  $1"; }

# show_progress ninja|ctest TEXT: reads the program's output, and shows its counts before TEXT.
# Passes on all lines but the counts of successes.
show_progress() {
  local text=$2 line done=0 all=0 tenth=0 shown='' width=0 counted passed_over
  case $1 in
    ninja)
      counted='^\[([0-9]+)/([0-9]+)\] '
      passed_over='^(ninja: no work to do\.|\[0/[0-9]+\] Re-checking globbed directories\.\.\.)$' ;;
    ctest)
      counted='^ *([0-9]+)/([0-9]+) Test +#.* Passed +[0-9.]+ sec'
      passed_over='^ *Start +[0-9]+: ' ;;
  esac
  if [ -t 1 ]; then width=$(stty size 2>/dev/null </dev/tty | cut -d' ' -f2); fi
  while IFS= read -r line || [ -n "$line" ]; do
    # Output of a failed step may contain such lines too, with other totals or earlier counts.
    if [[ $line =~ $counted ]] && ((BASH_REMATCH[2] >= all && BASH_REMATCH[1] > done)); then
      done=${BASH_REMATCH[1]} all=${BASH_REMATCH[2]}
      if ((width > 0)); then
        shown=$(printf '%s  [%*d/%d] %s' "$(minutes)" ${#all} "$done" "$all" "$text")
        printf '\r\033[K%s' "${shown:0:width - 1}"
      elif ((done * 10 / all > tenth)); then
        tenth=$((done * 10 / all))
        echo "$(minutes)  [$done/$all] $text"
      fi
    elif ! [[ $line =~ $passed_over ]]; then
      [ -z "$shown" ] || printf '\r\033[K'
      shown=
      printf '%s\n' "$line"
    fi
  done
  [ -z "$shown" ] || printf '\r\033[K'
}
