#!/usr/bin/env bash
# Puts the JavaScript client and the program that uses it into a folder, unless they are there.
# Usage: fetch.sh FOLDER
set -euo pipefail
cd "$(dirname "$0")"
mkdir -p "$1"
cp read.mjs "$1"
if cmp -s package-lock.json "$1/fetched"; then exit 0; fi
command -v npm >/dev/null || { echo "npm is missing: tool/install-packages.sh tests" >&2; exit 1; }
cp package.json package-lock.json "$1"
npm ci --no-audit --no-fund --loglevel=error --prefix "$1"
# Last: it says that everything before went well.
cp package-lock.json "$1/fetched"
