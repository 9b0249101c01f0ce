#!/usr/bin/env bash
# The real engine in the simulator under faults: every scenario, stage, backward and dtype in random
# orders. ZP_FAULT_EXECUTIONS: ends when so many ran; else ZP_FAULT_HOURS, by default one. Cells that
# are refused as documented do not count. ZP_FAULT_WORKERS: threads, by default one a core.
# ZP_FAULT_RANKS: world sizes, by default "2 3"; three ranks, struck twice, take four times as long.
# A line a run: round, stage, backward, dtype, ranks, faults at most, executions, findings, seconds.
set -uo pipefail
seed=${ZP_SEED:-$(date -u +%Y%m%d)}
workers=${ZP_FAULT_WORKERS:-$(nproc)}
most=${ZP_FAULT_EXECUTIONS:-0}
# Many small blocks live at a time: with the usual seven of a size kept for reuse, malloc is a third.
export GLIBC_TUNABLES=glibc.malloc.tcache_count=2000
result=0
executions=0
findings=0
round=0
end=$((SECONDS + ${ZP_FAULT_HOURS:-1} * 3600))
is_over() {
  if ((most > 0)); then ((executions >= most)); else ((SECONDS >= end)); fi
}
explore() {
  local stage=$1 backward=$2 dtype=$3 ranks=$4 faults=$5 begin=$SECONDS
  "$ZP_COMMAND" explore all --level engine --seed $((seed + round)) --budget 50x --faults all \
    --stage "$stage" --backward "$backward" --dtype "$dtype" --world-size "$ranks" \
    --faults-max "$faults" --workers "$workers" --progress none --color never >"$ZP_OUT/last.txt"
  local code=$?
  local ran found
  ran=$(awk '/^  [0-9]+ executions,/ { last = $1; sum += last }
             /^  refused as documented/ { sum -= last } END { print sum + 0 }' "$ZP_OUT/last.txt")
  found=$(grep -c '^FALSIFIED' "$ZP_OUT/last.txt")
  ((executions += ran))
  ((findings += found))
  echo "round $round stage $stage $backward $dtype ranks $ranks faults $faults:" \
    "$ran executions, $found findings, $((SECONDS - begin)) s"
  # 3: some kind of fault did not come up in so few executions of one cell
  ((code == 0 || code == 3)) || { result=$code; cat "$ZP_OUT/last.txt"; }
}
until is_over; do
  for backward in engine tensor; do
    for dtype in float32 fp16; do
      for stage in 0 1 2 3; do
        for ranks in ${ZP_FAULT_RANKS:-2 3}; do
          explore "$stage" "$backward" "$dtype" "$ranks" "$((ranks - 1))"
          is_over && break 4
        done
      done
    done
  done
  ((round += 1))
done
echo "$executions executions of all training scenarios under faults, $findings findings, seed $seed"
exit "$result"
