#!/usr/bin/env bash
# The whole equality matrix, all scenarios, with the properties of every rank: product M1 to M11.
set -uo pipefail
"$ZP_COMMAND" train --matrix full --scenario all --check-properties --progress none --color never \
  --junit "$ZP_OUT/matrix.xml" >"$ZP_OUT/matrix.txt"
code=$?
grep -vE '^(equal|refused E?[a-z0-9]+)  ' "$ZP_OUT/matrix.txt"
grep -E '^[0-9]+ cells: ' "$ZP_OUT/matrix.txt"
exit "$code"
