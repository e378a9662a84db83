#!/usr/bin/env bash
# A precompiled header that comes out of ccache is of the headers that are there, in whichever folder
# and order they changed, be it by a comment. Usage: precompiled_header.sh COMPILER LAUNCHER…
# The launcher has CCACHE_BASEDIR=@ where the folder of the sources belongs.
set -euo pipefail
compiler=$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export CCACHE_DIR=$folder/cache

# In this folder the header has that line and declares that name.
expect() {
  mkdir -p "$folder/$1"
  cd "$folder/$1"
  printf '#pragma once\n%s\nstruct %s {};\n' "$2" "$3" >included.hpp
  echo '#include "included.hpp"' >all.hxx
  : >all.hxx.cxx
  "${launcher[@]//@/$PWD}" "$compiler" -fpch-preprocess -x c++-header -include "$PWD/all.hxx" \
    -MD -MF all.hxx.gch.d -o all.hxx.gch -c all.hxx.cxx
  printf '#include "included.hpp"\n%s declared;\n' "$3" >user.cpp
  "$compiler" -include "$PWD/all.hxx" -fsyntax-only user.cpp
}
launcher=("$@")
expect one '' First
expect one '' Second
expect two '' First
expect two '' Third
expect one '' Third
expect two '' First
expect two '// A comment.' First
expect one '// Another comment.' First
