#!/usr/bin/env bash
# Chaos for as long as one likes: run.sh [--engine sqlite|postgres] [--seconds N] [--seed S] [--mutant NAME] [--folder F].
# Builds the program if need be; one JSON line of result, exit 1 on a violation.
set -euo pipefail
cd "$(dirname "$0")/../.."
[ -f build/dev/build.ninja ] || cmake --preset dev >/dev/null
cmake --build --preset dev --target stela_chaos >/dev/null
exec build/dev/bin/stela_chaos "$@"
