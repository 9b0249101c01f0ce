#!/usr/bin/env bash
# The real engine in the simulator, every scenario: random and PCT orders against the baseline, and
# each order once more on host threads, whose order tokens and bits have to be the same.
set -uo pipefail
seed=${ZP_SEED:-$(date -u +%Y%m%d)}
budget=${ZP_BUDGET:-20x}
result=0
runs=0
explore() {
  "$ZP_COMMAND" explore all --level engine --seed "$seed" --budget "$budget" --twice \
    --progress none --color never "$@" >"$ZP_OUT/$runs.txt"
  local code=$?
  ((runs += 1))
  ((code == 0)) || { result=$code; cat "$ZP_OUT/$((runs - 1)).txt"; }
}
for stage in 0 1 2 3; do
  for backward in engine tensor; do
    for preemption in blocked every-call; do
      explore --stage "$stage" --backward "$backward" --preemption "$preemption" --judge host
    done
    ((stage == 3)) || explore --stage "$stage" --backward "$backward" --nodes shared --judge host
    explore --stage "$stage" --backward "$backward" --scheduler pct:2 --world-size 4
  done
done
echo "$runs explorations of all training scenarios, $budget orders each, seed $seed"
exit "$result"
