#!/usr/bin/env bash
# Long random explorations of our policy; another seed every day, which the summary names.
set -uo pipefail
seed=${ZP_SEED:-$(date -u +%Y%m%d)}
result=0
runs=0
for params in 8 16; do
  out=$ZP_OUT/n$params
  "$ZP_COMMAND" explore all --policy exact --set "N=$params" --scheduler random \
    --budget "${ZP_BUDGET:-5000x}" --seed "$seed" --progress none --color never \
    --junit "$out.xml" >"$out.txt"
  code=$?
  ((runs += 1))
  ((code == 0)) || { result=$code; cat "$out.txt"; }
done
echo "$runs explorations of all scenarios, ${ZP_BUDGET:-5000x} random orders each, seed $seed"
exit "$result"
