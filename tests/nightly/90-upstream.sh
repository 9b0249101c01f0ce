#!/usr/bin/env bash
# What the newest release of DeepSpeed does otherwise than the last known one; writes recorder/upstream/results.md.
# Differences fail no test: they are what this part is for. ZP_ENVS: folder of environments.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
command -v "${ZP_PYTHON:-python3.11}" >/dev/null || { echo "upstream: no ${ZP_PYTHON:-python3.11}"; exit 77; }
page=()
[[ -w $root/recorder/upstream/results.md ]] && page=(--page)
"$root/recorder/upstream/run.sh" ${page[@]+"${page[@]}"} >"$ZP_OUT/differences.txt"
code=$?
cat "$ZP_OUT/differences.txt"
case $code in
  0) echo "upstream: $(head -n 1 "$ZP_OUT/differences.txt"): no difference" ;;
  1) echo "upstream: $(head -n 1 "$ZP_OUT/differences.txt"): $(grep -c '^      ' "$ZP_OUT/differences.txt") differences, see recorder/upstream/results.md" ;;
  77) echo "$(tail -n 1 "$ZP_OUT/differences.txt")" ;;
  *) echo "upstream: exit code $code" ;;
esac
((code == 1)) && exit 0
exit "$code"
