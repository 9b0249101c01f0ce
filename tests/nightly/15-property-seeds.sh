#!/usr/bin/env bash
# The property tests of each layer with the seed of the day and ten times the cases: the suite itself
# has a fixed seed. A failure prints the RC_PARAMS that repeat it.
set -uo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
seed=${ZP_SEED:-$(date -u +%Y%m%d)}
cases=${ZP_CASES:-1000}
"$root/zp" build dev >"$ZP_OUT/build.txt" 2>&1 || { tail -n 20 "$ZP_OUT/build.txt"; exit 1; }
failed=0
for layer in model engine sim props; do
  tests=${ZP_BUILD_DIR:-$root/build}/dev/bin/zeroproof_${layer}_tests
  RC_PARAMS="seed=$seed max_success=$cases" "$tests" --gtest_brief=1 >"$ZP_OUT/$layer.txt" 2>&1 ||
    { failed=$((failed + 1)); grep -E '^\[  FAILED|^RC_PARAMS' "$ZP_OUT/$layer.txt"; }
done
echo "seed $seed, $cases cases a property: $failed of 4 layers failed"
((failed == 0))
