#!/usr/bin/env bash
# Mutants of single statements: how many the properties kill, and every one that survives.
# ZP_SCORE_CASES: drawn programs beside the entries of tests/mutation/corpus (200 by default).
set -uo pipefail
export GLIBC_TUNABLES=glibc.malloc.tcache_count=2000
mutation=$(dirname -- "$ZP_COMMAND")/zeroproof-mutation
"$mutation" score --cases "${ZP_SCORE_CASES:-200}" --progress none --color never >"$ZP_OUT/score.txt"
code=$?
cat "$ZP_OUT/score.txt"
awk '$1 == "all" { print $2 " mutants, " $3 " killed, " $4 " survived, " $5 " unreached" }' "$ZP_OUT/score.txt"
exit "$code"
