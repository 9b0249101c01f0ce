#!/usr/bin/env bash
# The real engine in the simulator under faults: every scenario, stage and backward, random orders,
# as many executions as the hours allow. ZP_FAULT_HOURS in all, by default one; a million executions
# take about three on one core.
set -uo pipefail
seed=${ZP_SEED:-$(date -u +%Y%m%d)}
seconds=$((${ZP_FAULT_HOURS:-1} * 3600))
result=0
executions=0
round=0
end=$((SECONDS + seconds))
explore() {
  "$ZP_COMMAND" explore all --level engine --seed $((seed + round)) --budget 50x --faults all \
    --workers "$(nproc)" --progress none --color never "$@" >"$ZP_OUT/last.txt"
  local code=$?
  executions=$((executions + $(awk '/^  [0-9]+ executions,/ { sum += $1 } END { print sum + 0 }' "$ZP_OUT/last.txt")))
  # 3: some kind of fault did not come up in so few executions of one cell
  ((code == 0 || code == 3)) || { result=$code; cat "$ZP_OUT/last.txt"; }
}
while ((SECONDS < end)); do
  for stage in 0 1 2 3; do
    for backward in engine tensor; do
      for dtype in float32 fp16; do
        explore --stage "$stage" --backward "$backward" --dtype "$dtype"
        explore --stage "$stage" --backward "$backward" --dtype "$dtype" --faults-max 2 \
          --world-size 3
        ((SECONDS < end)) || break 3
      done
    done
  done
  ((round += 1))
done
echo "$executions executions of all training scenarios under faults, seed $seed"
exit "$result"
