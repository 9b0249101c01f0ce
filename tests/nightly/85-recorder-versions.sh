#!/usr/bin/env bash
# The recorder on the versions of PyTorch and DeepSpeed that people run: numbers, output and errors of
# every job are those without it, and no healthy job is accused. Environments come from PyPI.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
command -v "${ZP_PYTHON:-python3.11}" >/dev/null || { echo "versions: no ${ZP_PYTHON:-python3.11}"; exit 77; }
"$root/recorder/tests/versions.sh" --make || { echo "versions: the environments cannot be made here"; exit 77; }
"$root/recorder/tests/versions.sh" | tee "$ZP_OUT/versions.txt"
code=${PIPESTATUS[0]}
echo "versions: $(grep -c '^PyTorch' "$ZP_OUT/versions.txt") cells, $(grep -c CHANGED "$ZP_OUT"/*-healthy.txt | awk -F: '{n += $NF} END {print n + 0}') jobs changed"
exit "$code"
