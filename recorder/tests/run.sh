#!/usr/bin/env bash
# Tests of the recorder, for ctest: those without PyTorch with any python3, the others where
# $ZP_TORCH_PYTHON or python3 has PyTorch. Exit code 77: skipped.
set -uo pipefail
recorder=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
export PYTHONPATH=$recorder:$recorder/jobs PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1

command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
python3 -W error::SyntaxWarning -m unittest discover -s "$recorder/tests/pure" || exit 1

for python in "${ZP_TORCH_PYTHON:-}" python3; do
  [[ -n $python ]] || continue
  reason=$("$python" -c 'import torch' 2>&1) && {
    cd "$recorder/tests/with_torch" && exec "$python" -m unittest discover -s .
  }
done
echo "skipped: no Python with PyTorch (set ZP_TORCH_PYTHON to one): ${reason##*$'\n'}"
exit 77
