#!/usr/bin/env bash
# Tests of zeroproof_subject, for ctest: those without PyTorch with any python3 >= 3.10, the others
# where $ZP_TORCH_PYTHON or python3 has PyTorch. Exit code 77: skipped.
set -uo pipefail
subject=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
export PYTHONPATH=$subject:$subject/tests:$subject/../examples${PYTHONPATH:+:$PYTHONPATH} PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1

python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null ||
  { echo "skipped: no python3 >= 3.10"; exit 77; }
python3 -W error::SyntaxWarning -m unittest discover -s "$subject/tests/pure" || exit 1

for python in "${ZP_TORCH_PYTHON:-}" python3; do
  [[ -n $python ]] || continue
  reason=$("$python" -c 'import torch' 2>&1) && {
    cd "$subject/tests/with_torch" && exec "$python" -m unittest discover -s .
  }
done
echo "skipped: no Python with PyTorch (set ZP_TORCH_PYTHON to one): ${reason##*$'\n'}"
exit 77
