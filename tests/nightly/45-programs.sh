#!/usr/bin/env bash
# Drawn programs on the engine without a fault: against the unsharded reference and the monitors, and
# beside host threads, whose order tokens and numbers have to be the same. ZP_PROGRAM_SECONDS: of each
# (600 by default). A finding is an entry of a corpus in $ZP_OUT.
set -uo pipefail
seed=${ZP_SEED:-$(date -u +%Y%m%d)}
seconds=${ZP_PROGRAM_SECONDS:-600}
result=0
for judge in values host; do
  "$ZP_COMMAND" explore --level program --judge "$judge" --seed "$seed" --budget "${seconds}s" \
    --progress none --color never --out "$ZP_OUT/$judge" >"$ZP_OUT/$judge.txt"
  code=$?
  ((code == 0)) || { result=$code; cat "$ZP_OUT/$judge.txt"; }
done
echo "programs: $(sed -n 's/^  //; s/, [0-9.]* s$//; /findings/p' "$ZP_OUT/values.txt" "$ZP_OUT/host.txt" | paste -sd';'), seed $seed"
exit "$result"
