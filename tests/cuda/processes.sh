#!/usr/bin/env bash
# processes.sh ZEROPROOF: one process a GPU, on this machine's first two. A line a case; exit code 1
# if one failed, 77 without two GPUs. Each case starts its own processes with torchrun's variables.
set -u
zeroproof=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
gpus=$("$zeroproof" doctor --json 2>/dev/null | sed -n 's/.*"gpus": *\([0-9]*\).*/\1/p')
if [ "${gpus:-0}" -lt 2 ]; then
  echo "skipped: needs two GPUs, CUDA sees ${gpus:-0}"
  exit 77
fi
failures=0
port=$((20000 + $$ % 20000))
tiny="train --runtime cuda --model tiny --steps 4"
long="train --runtime cuda --model m267 --dtype bf16 --batch 8 --length 1024 --steps 1000"

# start RANK ARGUMENTS…: one process in the background, its number in pids[RANK].
start() {
  local rank=$1
  shift
  env RANK="$rank" WORLD_SIZE=2 LOCAL_RANK="${local_rank:-$rank}" MASTER_ADDR=127.0.0.1 \
    MASTER_PORT="$port" "$zeroproof" "$@" >"$work/out$rank" 2>"$work/err$rank" &
  pids[$rank]=$!
}
# finish RANK…: their exit codes in codes[RANK]; who takes longer than `patience` seconds is killed.
finish() {
  local rank end=$((SECONDS + ${patience:-120}))
  for rank in "$@"; do
    while jobs -pr | grep -qx "${pids[$rank]}"; do
      [ $SECONDS -ge $end ] && kill -9 "${pids[$rank]}"
      sleep 0.05
    done
    wait "${pids[$rank]}" 2>/dev/null
    codes[$rank]=$?
  done
  port=$((port + 1))
}
both() {
  start 0 "$@"
  start 1 "$@"
  finish 0 1
}
# judge NAME CONDITION…: the line of a case.
judge() {
  local name=$1
  shift
  if "$@"; then
    echo "held    $name"
  else
    echo "failed  $name: exit codes ${codes[*]}"
    sed 's/^/          /' "$work/out0" "$work/err0" "$work/err1" | head -20
    failures=$((failures + 1))
  fi
}
codes_are() { [ "${codes[0]}" = "$1" ] && [ "${codes[1]}" = "$2" ]; }
equal() { codes_are 0 0 && grep -q '^equal' "$work/out0" && [ ! -s "$work/out1" ]; }
says() { cat "$work/out$1" "$work/err$1" | grep -q -- "$2"; }

for stage in 0 1 2 3; do
  for dtype in float32 bf16; do
    both $tiny --stage $stage --dtype $dtype --check-baseline
    judge "tiny, stage $stage, $dtype, store over TCP: equal to the unsharded run" equal
  done
done
both $tiny --stage 2 --check-baseline --store "$work/store"
judge "tiny, stage 2, store in a folder: equal to the unsharded run" equal
for scenario in plain two_losses reentrant; do
  both train --runtime cuda --scenario $scenario --stage 3 --check-baseline
  judge "scenario $scenario, stage 3: equal to the baseline" equal
done

both $tiny --stage 3 --trace "$work/processes.jsonl"
"$zeroproof" $tiny --stage 3 --world-size 2 --trace "$work/threads.jsonl" >/dev/null 2>&1
same_traces() {
  codes_are 0 0 && cmp -s "$work/processes_r0.jsonl" "$work/threads_r0.jsonl" &&
    cmp -s "$work/processes_r1.jsonl" "$work/threads_r1.jsonl"
}
judge "tiny, stage 3: the traces of both ranks are those of threads" same_traces

for killed in 0 1; do
  left=$((1 - killed))
  start 0 $long --timeout 20
  start 1 $long --timeout 20
  sleep 15
  kill -9 "${pids[$killed]}"
  disown "${pids[$killed]}"
  began=$SECONDS
  patience=60 finish $left
  took=$((SECONDS - began))
  codes[$killed]=killed
  ends_well() { [ "${codes[$left]}" = 1 ] && says $left "rank $killed .*ended without a word" && [ $took -le 25 ]; }
  judge "rank $killed is killed in the middle: rank $left ended after $took s and names it" ends_well
done

for present in 0 1; do
  absent=$((1 - present))
  start $present $tiny --timeout 5
  patience=30 finish $present
  codes[$absent]="never started"
  names_it() { [ "${codes[$present]}" = 1 ] && says $present "waited 5000 ms for rank $absent"; }
  judge "rank $absent never starts: rank $present names it" names_it
done

CUDA_VISIBLE_DEVICES=0 both $tiny --stage 2
judge "two processes that see one GPU: both refuse and name it" \
  eval 'codes_are 77 77 && says 0 "have the same GPU" && says 1 "have the same GPU"'

if command -v torchrun >/dev/null; then
  torchrun --standalone --nproc-per-node 2 --no-python "$zeroproof" $tiny --stage 2 \
    --check-baseline >"$work/out0" 2>"$work/err0"
  codes=($? -)
  judge "torchrun --standalone: equal to the unsharded run" \
    eval '[ "${codes[0]}" = 0 ] && [ "$(grep -c "^equal" "$work/out0")" = 1 ]'
fi

timed="train --runtime cuda --model m267 --stage 2 --dtype bf16 --batch 8 --length 1024 --steps 24 --time --warmup 8"
patience=300 both $timed
processes=$(grep -o '[0-9.]* ms an iteration' "$work/out0")
judge "m267, stage 2, bf16: ${processes:-no time} of two processes" codes_are 0 0
threads=$("$zeroproof" $timed --world-size 2 2>&1 | grep -o '[0-9.]* ms an iteration')
echo "        beside ${threads:-no time} of two threads"
exit $((failures > 0))
