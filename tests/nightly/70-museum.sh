#!/usr/bin/env bash
# The whole museum: every entry with its minimised case, and the healthy engine for ZP_MUSEUM_HOURS
# (one by default) with the seed of the day. ZP_MUSEUM_WORKERS: threads, by default one a core.
set -uo pipefail
seed=${ZP_SEED:-$(date -u +%Y%m%d)}
workers=${ZP_MUSEUM_WORKERS:-$(nproc)}
seconds=$((${ZP_MUSEUM_HOURS:-1} * 3600))
# Many small blocks live at a time: see 60-engine-faults.sh.
export GLIBC_TUNABLES=glibc.malloc.tcache_count=2000
"$ZP_COMMAND" museum --matrix --seed "$seed" --workers "$workers" --budget 60s --healthy "${seconds}s" \
  --progress none --color never --junit "$ZP_OUT/museum.xml" >"$ZP_OUT/museum.txt"
code=$?
cat "$ZP_OUT/museum.txt"
grep ' entries modelled, ' "$ZP_OUT/museum.txt" | tail -1
exit "$code"
