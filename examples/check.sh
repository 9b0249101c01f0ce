#!/usr/bin/env bash
# check.sh PROGRAM: runs an example in a folder of its own, and compares what it prints with the
# block of README.md that begins with "$ NAME".
set -euo pipefail
program=$(readlink -f -- "$1")
name=$(basename -- "$program")
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
cp -- "$here"/*.json "$work"
awk -v line="\$ $name" '$0 == line { shown = 1; next } /^```/ { shown = 0 } shown' \
  "$here/README.md" >"$work/expected"
cd -- "$work"
"$program" >"$work/printed"
diff -- "$work/expected" "$work/printed"
