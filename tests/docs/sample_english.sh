#!/usr/bin/env bash
# Prints sentences of the project, chosen by a seed, for a person to judge: at most 3 of 60 may need a
# native writer's hand. They come from the comments of headers and sources, the texts of the tool, and
# the docs.
# Usage: tests/docs/sample_english.sh [SEED] [COUNT]
set -euo pipefail
cd "$(dirname "$0")/../.."
seed=${1:-1}
count=${2:-60}

sentences() {
  # Comments: consecutive lines are one text.
  find framework eventstore outbox projections tool samples -name '*.[hc]pp' | sort |
    xargs awk 'FNR == 1 { flush() } { line = $0 }
      line ~ /^ *\/\/\/? / { sub(/^ *\/\/\/? /, "", line); text = text " " line; if (!at) at = FILENAME ":" FNR; next }
      { flush() } END { flush() }
      function flush() { if (text) print at "\t" text; text = ""; at = "" }'
  # The summaries and explanations of commands.
  sed -n 's/^\([A-Z][^|#]*\)$/docs\/reference\/cli.md\t\1/p' docs/reference/cli.md
  # Prose of the docs: paragraphs without code, tables and headings.
  find docs README.md CONTRIBUTING.md -name '*.md' ! -path '*/adr/*' ! -path '*/reference/*' | sort |
    xargs awk 'FNR == 1 { flush(); code = 0 } /^```/ { flush(); code = !code; next } code { next }
      /^(    |\||#|<!--|>)/ || /^$/ { flush(); next }
      { line = $0; if (line ~ /^ *([-*]|[0-9]+\.) /) flush(); sub(/^ *([-*]|[0-9]+\.)? */, "", line)
        text = text " " line; if (!at) at = FILENAME ":" FNR } END { flush() }
      function flush() { if (text) print at "\t" text; text = ""; at = "" }'
}

# A text as its sentences, of six words and more.
sentences | awk -F'\t' '{ n = split($2, part, /[.?!] +/); for (i = 1; i <= n; i++)
    if (split(part[i], word, " ") >= 6) { gsub(/^ +/, "", part[i]); print $1 "\t" part[i] } }' |
  shuf -n "$count" --random-source=<(yes "stela $seed") |
  awk -F'\t' '{ printf "%2d  %s\n    %s\n", NR, $2, $1 }'
