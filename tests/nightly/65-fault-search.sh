#!/usr/bin/env bash
# Every place where a fault can strike in every order of ranks and streams: the real engine, plain,
# one step, two ranks, all stages, float32 and fp16. First with other ranks going on where one waits,
# which has to come to its end: with queued work as soon as it can run (a reduction, see
# Preemption::of_ranks), and but for stage 3, where that takes half an hour, whenever it can; then
# before every call, for ZP_FAULT_SEARCH_SECONDS a cell (120).
set -uo pipefail
seconds=${ZP_FAULT_SEARCH_SECONDS:-120}
export GLIBC_TUNABLES=glibc.malloc.tcache_count=2000
result=0
whole=0
cells=0
search() {
  local stage=$1 dtype=$2 preemption=$3 begin=$SECONDS
  shift 3
  "$ZP_COMMAND" explore plain --level engine --stage "$stage" --dtype "$dtype" --steps 1 \
    --faults all --judge streams --scheduler exhaustive --preemption "$preemption" \
    --progress none --color never "$@" >"$ZP_OUT/last.txt"
  local code=$? end="not at its end"
  ((cells += 1))
  if grep -q 'every order was covered' "$ZP_OUT/last.txt"; then
    ((whole += 1))
    end="every order"
  fi
  echo "stage $stage $dtype $preemption: $end, $((SECONDS - begin)) s"
  sed -n '/executions,/{N;p;q}' "$ZP_OUT/last.txt"
  # 3: ended by its budget, which only a search before every call may be
  ((code == 0 || (code == 3 && $# > 0))) || { result=1; cat "$ZP_OUT/last.txt"; }
}
for stage in 0 1 2 3; do
  for dtype in float32 fp16; do
    search "$stage" "$dtype" ranks
    ((stage == 3)) || search "$stage" "$dtype" blocked
  done
done
for stage in 0 1 2 3; do
  for dtype in float32 fp16; do
    search "$stage" "$dtype" every-call --budget "${seconds}s"
  done
done
echo "every fault place in every order: $whole of $cells searches came to their end"
exit "$result"
