#!/usr/bin/env bash
# hunt_example.sh ZEROPROOF: the bug of examples/my_engine.py is found, made small, and shown again,
# also by a script without zeroproof; without the bug there is no finding. Exit code 77: skipped.
set -uo pipefail
zeroproof=$1
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
export PYTHONPATH=$root/subject:$root/examples PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1

python=
for candidate in "${ZP_TORCH_PYTHON:-}" python3; do
  [[ -n $candidate ]] && "$candidate" -c 'import torch' 2>/dev/null && python=$candidate && break
done
[[ -n $python ]] || { echo "skipped: no Python with PyTorch (set ZP_TORCH_PYTHON to one)"; exit 77; }

fail() {
  echo "$*"
  exit 1
}
hunt() { "$zeroproof" hunt --progress none --python "$python" "$@"; }

hunt --engine my_engine:make --budget 12x || fail "the example engine is wrong without its bug"
hunt --engine my_engine:make --set overwrites=true --budget 8x --shrink 80x,2m --out "$out/report"
(($? == 1)) || fail "the bug was not found"

cd "$out/report" || exit 1
findings=$("$python" - <<'PYTHON'
import glob, json

for path in glob.glob("*.issue.md"):
    finding = json.load(open(path.replace(".issue.md", ".json")))
    statements = len(finding["program"]["body"])
    assert statements <= 8, f"{path}: {statements} statements"
    print(path.replace(".issue.md", ""))
PYTHON
) || fail "a finding is not small"
for finding in $findings; do
  hunt --replay "$finding.json" >/dev/null
  (($? == 1)) || fail "$finding: not shown again"
  "$python" "$finding.py" >/dev/null 2>&1
  (($? == 1)) || fail "$finding.py: does not show it"
done
echo "found, made small and shown again: $findings"
