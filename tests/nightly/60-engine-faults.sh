#!/usr/bin/env bash
# The real engine in the simulator under faults: every scenario, stage, backward and dtype in random
# orders. ZP_FAULT_EXECUTIONS: ends when so many ran; else ZP_FAULT_HOURS, by default one. Cells that
# are refused as documented do not count. ZP_FAULT_WORKERS: threads, by default one a core.
# ZP_FAULT_RANKS: world sizes, by default "2 3"; three ranks, struck twice, take four times as long.
# ZP_FAULT_BUDGET: executions of one cell in a row, by default 50x.
# A line a shard: round, stage, backward, dtype, ranks, faults at most, budget, executions, findings,
# seconds. ZP_FAULT_LOG keeps the lines: a run with the same log goes on where the one before was
# ended, and its totals are those of all.
set -uo pipefail
seed=${ZP_SEED:-$(date -u +%Y%m%d)}
workers=${ZP_FAULT_WORKERS:-$(nproc)}
budget=${ZP_FAULT_BUDGET:-50x}
most=${ZP_FAULT_EXECUTIONS:-0}
log=${ZP_FAULT_LOG:-$ZP_OUT/shards.txt}
# Many small blocks live at a time: with the usual seven of a size kept for reuse, malloc is a third.
export GLIBC_TUNABLES=glibc.malloc.tcache_count=2000
result=0
executions=0
findings=0
round=0
end=$((SECONDS + ${ZP_FAULT_HOURS:-1} * 3600))
touch "$log"
is_over() {
  if ((most > 0)); then ((executions >= most)); else ((SECONDS >= end)); fi
}
run() {
  local shard=$1 stage=$2 backward=$3 dtype=$4 ranks=$5 faults=$6 begin=$SECONDS
  "$ZP_COMMAND" explore all --level engine --seed $((seed + round)) --budget "$budget" --faults all \
    --stage "$stage" --backward "$backward" --dtype "$dtype" --world-size "$ranks" \
    --faults-max "$faults" --workers "$workers" --progress none --color never >"$ZP_OUT/last.txt"
  local code=$?
  local ran found
  ran=$(awk '/^  [0-9]+ executions,/ { last = $1; sum += last }
             /^  refused as documented/ { sum -= last } END { print sum + 0 }' "$ZP_OUT/last.txt")
  found=$(grep -c '^FALSIFIED' "$ZP_OUT/last.txt")
  # 3: some kind of fault did not come up in so few executions of one cell
  ((code == 0 || code == 3)) || { result=$code; cat "$ZP_OUT/last.txt"; }
  ((code == 0 || code == 1 || code == 3)) || return
  echo "$shard: $ran executions, $found findings, $((SECONDS - begin)) s" | tee -a "$log"
}
explore() {
  local shard="seed $seed round $round stage $1 $2 $3 ranks $4 faults $5 budget $budget"
  grep -q "^$shard:" "$log" || run "$shard" "$@"
  read -r ran found < <(grep "^$shard:" "$log" | sed 's/.*: \([0-9]*\) executions, \([0-9]*\) .*/\1 \2/')
  ((executions += ${ran:-0}))
  ((findings += ${found:-0}))
}
until is_over; do
  for backward in engine tensor; do
    for dtype in float32 fp16; do
      for stage in 0 1 2 3; do
        for ranks in ${ZP_FAULT_RANKS:-2 3}; do
          explore "$stage" "$backward" "$dtype" "$ranks" "$((ranks - 1))"
          is_over && break 5
        done
      done
    done
  done
  ((round += 1))
done
((findings == 0 || result != 0)) || result=1
echo "$executions executions of all training scenarios under faults, $findings findings, seed $seed"
exit "$result"
