#!/usr/bin/env bash
# The common model of the explorers: DPOR against the full search on every defect, and random
# schedules that have to meet every probe and every feasible pair order, and 99 % of the triples.
set -uo pipefail
seed=${ZP_SEED:-$(date -u +%Y%m%d)}
schedules=${ZP_SCHEDULES:-20000x}
result=0
runs=0
explore() {  # EXPECTED_CODE ARGUMENTS...
  local expected=$1
  shift
  "$ZP_COMMAND" explore zero_epilogue --seed "$seed" --progress none --color never "$@" >"$ZP_OUT/$runs.txt"
  local code=$?
  ((runs += 1))
  ((code == expected)) || { result=1; echo "expected $expected, got $code: $*"; cat "$ZP_OUT/$((runs - 1)).txt"; }
}
property() { sed -n 's/^ "property": "\(A[1-5]\)",*$/\1/p' "$ZP_OUT/$((runs - 1)).txt"; }
for defect in none M1 M2 M3 M4 M5 M6 M7 M8 M9; do
  [[ $defect == none ]] && code=0 || code=1
  [[ $defect == M7 ]] && size=(--set N=3 --set K=2) || size=(--set N=5 --set N1=2)
  explore $code "${size[@]}" --set defect="$defect" --no-reduction --json
  by_search=$(property)
  explore $code "${size[@]}" --set defect="$defect" --scheduler dpor --json
  [[ $by_search == "$(property)" ]] || { result=1; echo "$defect: full $by_search, dpor $(property)"; }
done
for size in 'P=2 N=5 K=2' 'P=3 N=5' 'P=2 N=5 late=1' 'P=2 N=7 order=spine' 'P=2 N=8'; do
  words=()
  for word in $size; do words+=(--set "$word"); done
  explore 0 "${words[@]}" --scheduler random --budget "$schedules" --coverage
  tail -n 1 "$ZP_OUT/$((runs - 1)).txt"
  share=$(sed -n 's/.*triples [0-9]* of [0-9]* (\([0-9.]*\) %).*/\1/p' "$ZP_OUT/$((runs - 1)).txt")
  awk -v share="${share:-0}" 'BEGIN { exit !(share >= 99) }' ||
    { result=1; echo "$size: ${share:-no} % of the triples"; }
done
echo "$runs explorations of the common model, probes within $schedules schedules, seed $seed"
exit "$result"
