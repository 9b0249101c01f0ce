#!/usr/bin/env bash
# run.sh [--deepspeed V] [--torch V] [OPTION...]: what a release of DeepSpeed does otherwise than a known
# one; `./zp upstream`. Makes an environment from PyPI, records, reads, prints the differences.
#   --deepspeed V, --torch V  releases; the newest without
#   --against V               the known release to compare with: its digest is in tests/data/upstream;
#                             without: that of V, or else the newest one before V
#   --parts P,...             of suite, programs, manager and hazards
#   --write                   writes the digest of V into tests/data/upstream
#   --again                   only reads again what an earlier run left in $ZP_OUT
#   --page                    writes the differences into recorder/upstream/results.md, between its markers
# $ZP_COMMAND: a built zeroproof. $ZP_ENVS: folder of environments. $ZP_OUT: folder for what is recorded.
# Exit code 0: no difference; 1: differences; 2: usage; 77: no such release can be installed here.
set -uo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
source "$here/../environments.sh"
deepspeed= torch= rest=()
while (($# > 0)); do
  case $1 in
    --deepspeed) deepspeed=${2:-}; shift ;;
    --torch) torch=${2:-}; shift ;;
    --against | --parts) rest+=("$1" "${2:-}"); shift ;;
    --again | --write | --page) rest+=("$1") ;;
    --help | -h) sed -n '2,/^set /{/^# /s/^# //p}' "${BASH_SOURCE[0]}"; exit 0 ;;
    *) echo "upstream knows --deepspeed, --torch, --against, --parts, --again, --write and --page, not '$1'" >&2; exit 2 ;;
  esac
  (($# > 0)) && shift
done
deepspeed=${deepspeed:-$(newest_release deepspeed)}
torch=${torch:-$(newest_release torch)}
[[ -n $deepspeed && -n $torch ]] || { echo "upstream: the package index names no release of deepspeed or torch"; exit 77; }
mkdir -p "$envs" || exit 77
numpy=$(sed -n "s/^${torch//./\\.}  *\([^ ]*\) .*/\1/p" "$here/../tests/versions.txt")
make_torch "$torch" "${numpy:-numpy}" || { echo "upstream: PyTorch $torch cannot be installed here"; exit 77; }
make_deepspeed "$torch" "$deepspeed" || { echo "upstream: DeepSpeed $deepspeed cannot be installed here"; exit 77; }
export DS_ACCELERATOR=cpu PYTHONPATH=$envs/ds-$deepspeed PYTHONDONTWRITEBYTECODE=1
export TORCH_EXTENSIONS_DIR=$envs/extensions/${torch}_$deepspeed
mkdir -p "$TORCH_EXTENSIONS_DIR"
why=$("$envs/torch-$torch/bin/python" -W ignore -c 'import deepspeed' 2>&1) ||
  { echo "upstream: DeepSpeed $deepspeed cannot be imported with PyTorch $torch: ${why##*$'\n'}"; exit 77; }
exec "$envs/torch-$torch/bin/python" -W ignore "$here/command.py" --out "${ZP_OUT:-$(mktemp -d)}" \
  --zeroproof "${ZP_COMMAND-zeroproof}" ${rest[@]+"${rest[@]}"}
