#!/usr/bin/env bash
# Everything that needs a GPU, on a machine that has some: one line a part, held or FAILED, and its seconds.
#
#   tests/cuda/on_gpus.sh BIN [PART...]     BIN: a folder with zeroproof, zeroproof_engine_tests, fused_kernels_check
#
# Parts: kernels runtime schedules faults sanitizer times calls processes hosts conformance programs hooks, and where $BENCH has torch_baseline.py and
# sweep.sh losses torch; all of them without a name. Logs lie in $OUT. WORLD=N: ranks of schedules, faults and
# conformance (2, or 1 on one GPU). Seen on two H200s: losses 160 s, torch 400 s, of which the torch engines take 180.
set -uo pipefail
bin=$(cd -- "$1" && pwd) || exit 2
shift
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
out=${OUT:-$PWD/out/gpu}
mkdir -p "$out"
gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU')
((gpus > 0)) || { echo "no GPU: no check was run"; exit 77; }
world=${WORLD:-$((gpus < 2 ? 1 : 2))}
failed=0

# part NAME LIMIT_S COMMAND...: its log in $out/NAME.log, its last lines on a failure.
part() {
  local name=$1 limit=$2 start=$SECONDS code word=held
  shift 2
  timeout -k 5 "$limit" "$@" >"$out/$name.log" 2>&1
  code=$?
  ((code == 0)) || { word=FAILED; failed=1; }
  printf '%-7s %-28s %4d s  exit %d  %s\n' "$word" "$name" $((SECONDS - start)) "$code" \
    "$(grep -v '^ *$' "$out/$name.log" | tail -n 1 | cut -c1-150)"
  ((code == 0)) || tail -n 15 "$out/$name.log" | sed 's/^/        /'
}

run_kernels() { part kernels 60 "$bin/fused_kernels_check"; }
run_runtime() { part runtime 240 "$bin/zeroproof_engine_tests" --gtest_filter='*Cuda*'; }

run_schedules() {
  local stage
  for stage in 1 2 3; do
    part "schedules-$stage" 150 "$bin/zeroproof" explore all --level engine --stage "$stage" \
      --judge cuda --budget 4x --world-size "$world"
  done
}

run_faults() { part faults 300 python3 "$here/faults.py" "$bin/zeroproof" --world-size "$world" --jobs 3 --limit-s 280; }

# Of our own kernels: on one GPU, so without NCCL, whose kernels poll memory that other GPUs write and whose modules
# take minutes to instrument; and with our own attention, since cuDNN's kernels write by bulk copies, which initcheck
# does not see, and wait at barriers of a part of a block, which synccheck takes for errors.
run_sanitizer() {
  local tool
  for tool in memcheck racecheck initcheck synccheck; do
    part "sanitizer-$tool" "${LIMIT_S:-100}" compute-sanitizer --tool "$tool" --error-exitcode 9 \
      "$bin/zeroproof" train --runtime cuda --model tiny --stage 2 --dtype bf16 --world-size 1 \
      --steps 2 --attention own
  done
}

timed() {  # NAME FLAGS...
  local name=$1
  shift
  part "times-$name" 60 "$bin/zeroproof" train --runtime cuda --model m267 --dtype bf16 --batch 8 \
    --steps 40 --time --warmup 20 "$@"
}
run_times() {
  timed 1gpu-1024 --world-size 1 --stage 0 --length 1024
  timed 1gpu-512 --world-size 1 --stage 0 --length 512
  timed 1gpu-1024-graph --world-size 1 --stage 0 --length 1024 --cuda-graph
  timed 1gpu-512-graph --world-size 1 --stage 0 --length 512 --cuda-graph
  ((gpus < 2)) && return
  local stage
  for stage in 1 2 3; do
    timed "${gpus}gpus-stage$stage-1024" --world-size "$gpus" --stage "$stage" --length 1024
  done
  timed "${gpus}gpus-stage2-512" --world-size "$gpus" --stage 2 --length 512
}

run_calls() { part calls 200 python3 "$here/driver_calls.py" "$bin/zeroproof" --world-size "$world" --names; }

run_processes() {
  [[ -x $here/processes.sh ]] || { echo "skipped processes: no script for it"; return; }
  part processes 240 "$here/processes.sh" "$bin/zeroproof"
}
run_hosts() { part hosts 200 "$here/two_hosts.sh" "$bin/zeroproof"; }

run_conformance() {
  part conformance 200 python3 "$here/conformance.py" "$bin/zeroproof" --world-size "$world" --limit-s 190
}
# Drawn programs and those of the corpus, as many as have no more ranks than there are GPUs.
run_programs() {
  part programs-drawn 200 "$bin/zeroproof" explore --level program --judge cuda --seed "${SEED:-7}" \
    --budget 600x,150s --progress none
  local corpus=("$here"/../mutation/corpus/*.json)
  part programs-corpus 120 "$bin/zeroproof" explore --level program --judge cuda --budget 1x \
    --progress none "${corpus[@]}"
}
run_hooks() { part hooks 360 python3 "$bench/hook_pairs.py" "$bin/zeroproof" --limit-s 90; }

# compared NAME LIMIT SCRIPT FLAGS...: beside the torch engines of $BENCH.
compared() {
  local name=$1 limit=$2 script=$3
  shift 3
  [[ -n ${BENCH:-} ]] || { echo "skipped $name: BENCH names no folder with torch_baseline.py"; return; }
  part "$name" "$limit" python3 "$bench/$script" "$bin/zeroproof" --bench "$BENCH" --out "$out/$name" "$@"
}
run_losses() {
  local counts=1
  ((gpus < 2)) || counts=1,2
  compared losses 300 loss_curves.py --gpus "$counts"
}
run_torch() { compared torch 560 beside_torch.py --gpus "$gpus" --budget 220; }

bench=$here/../../bench/cuda
parts=("$@")
((${#parts[@]})) || parts=(kernels runtime schedules faults sanitizer times calls processes hosts conformance programs hooks losses torch)
for name in "${parts[@]}"; do
  declare -F "run_$name" >/dev/null || { echo "unknown part '$name'"; exit 2; }
  "run_$name"
done
exit $failed
