#!/usr/bin/env bash
# processes.sh ZEROPROOF: one process a GPU, on this machine's first WORLD (2). A line a case; exit code 1
# if one failed, 77 without as many GPUs. Each case starts its own processes with torchrun's variables.
set -u
zeroproof=$1
world=${WORLD:-2}
last=$((world - 1))
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
gpus=$("$zeroproof" doctor --json 2>/dev/null | sed -n 's/.*"gpus": *\([0-9]*\).*/\1/p')
if [ "$world" -lt 2 ] || [ "${gpus:-0}" -lt "$world" ]; then
  echo "skipped: needs $world GPUs and at least two, CUDA sees ${gpus:-0}"
  exit 77
fi
failures=0
port=$((20000 + $$ % 20000))
tiny="train --runtime cuda --model tiny --steps 4"
captured="train --runtime cuda --model tiny --steps 8 --cuda-graph"
long="train --runtime cuda --model m267 --dtype bf16 --batch 8 --length 1024 --steps 1000"

# start RANK ARGUMENTS…: one process in the background, its number in pids[RANK].
start() {
  local rank=$1
  shift
  env RANK="$rank" WORLD_SIZE="$world" LOCAL_RANK="${local_rank:-$rank}" MASTER_ADDR=127.0.0.1 \
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
ranks=$(seq 0 $last)
every() {
  local rank
  for rank in $ranks; do start "$rank" "$@"; done
  finish $ranks
}
others() {  # RANK: all but this one
  seq 0 $last | grep -vx "$1"
}
# judge NAME CONDITION…: the line of a case.
judge() {
  local name=$1
  shift
  if "$@"; then
    echo "held    $name"
  else
    echo "failed  $name: exit codes ${codes[*]}"
    sed 's/^/          /' "$work/out0" "$work"/err? | head -20
    failures=$((failures + 1))
  fi
}
codes_are() {  # CODE RANK…
  local code=$1 rank
  shift
  for rank in "$@"; do [ "${codes[$rank]}" = "$code" ] || return 1; done
}
equal() { codes_are 0 $ranks && grep -q '^equal' "$work/out0" && [ ! -s "$work/out$last" ]; }
copied() { equal && grep -q '^  collectives: copies$' "$work/out0"; }
says() { cat "$work/out$1" "$work/err$1" | grep -q -- "$2"; }

for stage in 0 1 2 3; do
  for dtype in float32 bf16; do
    every $tiny --stage $stage --dtype $dtype --check-baseline
    judge "tiny, stage $stage, $dtype, store over TCP: by copies, equal to the unsharded run" copied
  done
  every $captured --stage $stage --dtype bf16 --check-baseline
  judge "tiny, stage $stage, bf16, a captured iteration: by copies, equal to the unsharded run" copied
  every $tiny --stage $stage --dtype bf16 --check-baseline --collectives nccl
  judge "tiny, stage $stage, bf16, NCCL: equal to the unsharded run" equal
done
every $tiny --stage 2 --check-baseline --store "$work/store"
judge "tiny, stage 2, store in a folder: equal to the unsharded run" equal
for scenario in plain two_losses reentrant; do
  every train --runtime cuda --scenario $scenario --stage 3 --check-baseline
  judge "scenario $scenario, stage 3: equal to the baseline" equal
done

every $tiny --stage 3 --trace "$work/processes.jsonl"
"$zeroproof" $tiny --stage 3 --world-size "$world" --trace "$work/threads.jsonl" >/dev/null 2>&1
same_traces() {
  local rank
  codes_are 0 $ranks || return 1
  for rank in $ranks; do
    diff "$work/processes_r$rank.jsonl" "$work/threads_r$rank.jsonl" >"$work/err$rank" || return 1
  done
}
judge "tiny, stage 3: the traces of all ranks are those of threads" same_traces

for killed in 0 $last; do
  left=$(others "$killed")
  for rank in $ranks; do start "$rank" $long --timeout 20; done
  sleep 15
  kill -9 "${pids[$killed]}"
  disown "${pids[$killed]}"
  began=$SECONDS
  patience=60 finish $left
  took=$((SECONDS - began))
  codes[$killed]=killed
  ends_well() {
    local rank
    codes_are 1 $left && [ $took -le 25 ] || return 1
    for rank in $left; do says "$rank" "rank $killed .*ended without a word" || return 1; done
  }
  judge "rank $killed is killed in the middle: all others ended after $took s and name it" ends_well
done

for absent in $last 0; do
  present=$(others "$absent")
  for rank in $present; do start "$rank" $tiny --timeout 5; done
  patience=30 finish $present
  codes[$absent]="never started"
  names_it() {
    local rank
    codes_are 1 $present || return 1
    for rank in $present; do says "$rank" "waited 5000 ms for rank $absent" || return 1; done
  }
  judge "rank $absent never starts: all others name it" names_it
done

CUDA_VISIBLE_DEVICES=0 every $tiny --stage 2
judge "processes that see one GPU: all refuse and name it" \
  eval 'codes_are 77 $ranks && says 0 "have the same GPU" && says $last "have the same GPU"'

if command -v torchrun >/dev/null; then
  torchrun --standalone --nproc-per-node "$world" --no-python "$zeroproof" $tiny --stage 2 \
    --check-baseline >"$work/out0" 2>"$work/err0"
  codes=($? -)
  judge "torchrun --standalone: equal to the unsharded run" \
    eval '[ "${codes[0]}" = 0 ] && [ "$(grep -c "^equal" "$work/out0")" = 1 ]'
fi

timed="train --runtime cuda --model m267 --stage 2 --dtype bf16 --batch 8 --length 1024 --steps 24 --time --warmup 8"
patience=300 every $timed
processes=$(grep -o '[0-9.]* ms an iteration' "$work/out0")
judge "m267, stage 2, bf16: ${processes:-no time} of $world processes" codes_are 0 $ranks
exit $((failures > 0))
