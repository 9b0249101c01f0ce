#!/usr/bin/env bash
# Real processes that are killed, stopped and starved while they train and save.
set -uo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
program=$(dirname -- "$ZP_COMMAND")/zeroproof_soak_rank
[[ -x $program ]] || { echo "there is no $program: build the tests of the release preset"; exit 77; }
seed=$(date +%Y%m%d)
python3 "$root/tests/soak/soak.py" "$program" --minutes 10 --ranks 8 --seed "$seed" --out "$ZP_OUT/soak.json" >"$ZP_OUT/soak.txt" 2>&1
code=$?
cat "$ZP_OUT/soak.txt"
head -n 1 "$ZP_OUT/soak.txt"
exit $code
