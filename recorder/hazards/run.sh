#!/usr/bin/env bash
# run.sh [--write] [hNN|nNN...]: the hazards of docs/reference/hazards.md and the defects N1 to N11 on the DeepSpeed
# of $ZP_TORCH_PYTHON; one line a case. With $ZP_ZEROPROOF, a built zeroproof, also those of exports.txt.
# Exit code 0: every case did what tests/data/hazards/deepspeed-VERSION.txt says, or no such table is
# there; 1: a case did not, or crashed; 77: no PyTorch or no DeepSpeed there.
set -u
cd -- "$(dirname -- "${BASH_SOURCE[0]}")" || exit 2
python=${ZP_TORCH_PYTHON:-/opt/torch/bin/python}
command -v "$python" >/dev/null || { echo "SKIP: $python is no command"; exit 77; }
exec "$python" -W ignore cases.py "$@"
