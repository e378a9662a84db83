#!/bin/sh
# The sample's story: a course with one seat and two students. Usage: story.sh PROGRAM
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
courses() { "$program" "$folder/school.db" "$@"; }
program=$1
courses define maths 1
courses enrol jane
courses enrol john
courses subscribe maths jane
courses subscribe maths john 2>&1 && exit 1
courses subscribe maths mary 2>&1 && exit 1
courses capacity maths 2
courses subscribe maths john
courses show
