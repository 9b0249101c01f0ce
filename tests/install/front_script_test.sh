#!/usr/bin/env bash
# front_script_test.sh: what ./zp answers to a newcomer, who has not built anything yet.
set -euo pipefail
zp=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)/zp
folder=$(mktemp -d) && trap 'rm -rf -- "$folder"' EXIT
export ZP_BUILD_DIR=$folder ZP_INSTALL=never

fails() { echo "FAILED: $1: $(cat "$folder/out")" >&2; exit 1; }
built() { find "$folder" -name CMakeCache.txt | grep -q .; }

for words in '' help -h --help 'test --help' 'build --help'; do
  # Unquoted on purpose: some are two words.
  timeout 20 "$zp" $words >"$folder/out" 2>&1 || fails "zp $words"
  grep -q '^usage: ./zp COMMAND' "$folder/out" || fails "zp $words: no usage"
  ! built || fails "zp $words builds"
done
timeout 20 "$zp" --help >"$folder/out" && grep -q 'after ./zp verify, which builds it$' "$folder/out" ||
  fails 'zp --help: where the commands of zeroproof are listed'

mkdir -p "$folder/release/bin"
printf '#!/bin/sh\necho "commands, $1"\n' >"$folder/release/bin/zeroproof"
chmod +x "$folder/release/bin/zeroproof"
timeout 20 "$zp" --help >"$folder/out" && grep -q '^commands, --help$' "$folder/out" ||
  fails 'zp --help: no help of the command that is built'
