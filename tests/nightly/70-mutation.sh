#!/usr/bin/env bash
# The whole hunt: every fault with its minimised case, and the unmutated engine for ZP_MUTATION_HOURS
# (one by default) with the seed of the day. ZP_MUTATION_WORKERS: threads, by default one a core.
set -uo pipefail
seed=${ZP_SEED:-$(date -u +%Y%m%d)}
workers=${ZP_MUTATION_WORKERS:-$(nproc)}
seconds=$((${ZP_MUTATION_HOURS:-1} * 3600))
# Many small blocks live at a time: see 60-engine-faults.sh.
export GLIBC_TUNABLES=glibc.malloc.tcache_count=2000
"$ZP_COMMAND" mutation --all --seed "$seed" --workers "$workers" --budget 60s --unmutated "${seconds}s" \
  --progress none --color never --write-corpus "$ZP_OUT/corpus" --junit "$ZP_OUT/mutation.xml" >"$ZP_OUT/mutation.txt"
code=$?
cat "$ZP_OUT/mutation.txt"
grep ' faults found' "$ZP_OUT/mutation.txt" | tail -1
exit "$code"
