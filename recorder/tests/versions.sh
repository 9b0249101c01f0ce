#!/usr/bin/env bash
# versions.sh [--brief] [--make] [--write] [TORCH[/DEEPSPEED]...]: the recorder on the versions of
# versions.txt. Makes what is missing under $ZP_ENVS from PyPI, runs the identity tests, the suite and
# the healthy jobs in each cell, reads their traces with $ZP_COMMAND (zeroproof), prints the table.
#   --make   only makes the environments
#   --brief  a part of the jobs
#   --write  puts the table into versions.md beside it, between its markers
# ZP_ENVS: folder of the environments (~/.cache/zeroproof/envs; 5 GB for each PyTorch).
# ZP_OUT: folder for the rows as JSON (a temporary one). Exit code 0: every cell held.
set -uo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
source "$here/../environments.sh"
out=${ZP_OUT:-$(mktemp -d)}
brief= make_only= write=
while [[ ${1:-} == --* ]]; do
  case $1 in
    --brief) brief=yes ;;
    --make) make_only=yes ;;
    --write) write=yes ;;
    *) echo "versions.sh knows --brief, --make and --write, not '$1'" >&2; exit 2 ;;
  esac
  shift
done
wanted=("$@")

# Jobs of a brief run, by what they need.
brief_none='ddp_plain,ddp_static_graph,ddp_find_unused,ddp_closure,ddp_checkpoint-*,fsdp1_plain'
brief_none+=',fsdp2_plain,fsdp2_reference,tensor_parallel,moe_all_to_all,pipeline-gpipe,object_collectives'
brief_deepspeed='zero_plain-*,zero_boundary-2,zero_checkpoint-3-reentrant,zero3_gathered'
brief_suite='plain_job-*,ddp_job-ddp_mlp,fsdp2_job-fsdp2_mlp,skipped*-Mlp,*exception_recovery-[13]'

make_others() { # make_others TORCH
  [[ -d $envs/others/transformers ]] && return
  echo "making $envs/others" >&2
  grep -v '^#' "$here/versions_others.txt" >"$envs/others.txt"
  pip_into "$envs/torch-$1/bin/python" --no-deps --target "$envs/others" -r "$envs/others.txt"
}

is_wanted() { # is_wanted TORCH CELL
  [[ ${#wanted[@]} -eq 0 ]] && return
  local word
  for word in "${wanted[@]}"; do
    [[ $word == "$1" || $word == "$1/$2" ]] && return
  done
  return 1
}

# Environment of one cell: what stands before the PyTorch environment in PYTHONPATH.
layers() { # layers CELL
  case $1 in
    none) ;;
    others) echo "$envs/others:$envs/ds-$newest" ;;
    *) echo "$envs/ds-$1" ;;
  esac
}

run_cell() { # run_cell TORCH CELL
  local python=$envs/torch-$1/bin/python name=$out/$1_$2 packages=$2 jobs='*' suite='*'
  [[ $2 == none || $2 == others ]] || packages=deepspeed
  if [[ -n $brief ]]; then
    suite=$brief_suite
    case $packages in
      none) jobs=$brief_none ;;
      deepspeed) jobs=$brief_deepspeed ;;
    esac
  fi
  export PYTHONPATH TORCH_EXTENSIONS_DIR=$envs/extensions/$1_$2 DS_ACCELERATOR=cpu
  PYTHONPATH=$(layers "$2")
  mkdir -p "$TORCH_EXTENSIONS_DIR"
  "$python" -c 'import torch' || { echo "cannot run" >"$name.why"; return 1; }
  if [[ $packages == deepspeed ]] && ! why=$("$python" -W ignore -c 'import deepspeed' 2>&1); then
    tail -n 1 <<<"$why" >"$name.why"
    echo "$1 with DeepSpeed $2: $(cat "$name.why")"
    return 0
  fi
  local code=0
  "$python" "$here/../jobs/run_all.py" healthy --may-fail --packages "$packages" --jobs "$jobs" \
    --zeroproof "${ZP_COMMAND:-zeroproof}" --json "$name-healthy.json" --keep "$name" >"$name-healthy.txt" || code=1
  tail -n 1 "$name-healthy.txt"
  [[ $packages == others ]] && return $code
  "$python" "$here/../jobs/run_all.py" suite --packages "$packages" --jobs "$suite" \
    --zeroproof "${ZP_COMMAND:-zeroproof}" --json "$name-suite.json" --keep "$name" >"$name-suite.txt" || true
  tail -n 1 "$name-suite.txt"
  grep -q CHANGED "$name-suite.txt" && code=1
  if [[ $packages == none ]]; then
    (cd "$here/with_torch" && PYTHONPATH=$here/..:$here/../jobs "$python" -m unittest test_identity) \
      >"$name-identity.txt" 2>&1 || { code=1; tail -n 3 "$name-identity.txt"; }
  fi
  return $code
}

newest=$(sed -n 's/.* \([0-9.]*\) others$/\1/p' "$here/versions.txt")
mkdir -p "$envs" "$out"
failed=0
while read -r torch numpy cells; do
  [[ -n $torch && $torch != '#'* ]] || continue
  for cell in $cells; do
    is_wanted "$torch" "$cell" || continue
    make_torch "$torch" "$numpy" || { failed=1; continue; }
    case $cell in
      none) ;;
      others) make_deepspeed "$torch" "$newest" && make_others "$torch" || { failed=1; continue; } ;;
      *) make_deepspeed "$torch" "$cell" || { failed=1; continue; } ;;
    esac
    [[ -n $make_only ]] && continue
    echo "PyTorch $torch, $cell"
    run_cell "$torch" "$cell" || failed=1
  done
done <"$here/versions.txt"
[[ -n $make_only ]] || python3 "$here/versions_table.py" "$out" ${write:+--write "$here/versions.md"}
exit $failed
