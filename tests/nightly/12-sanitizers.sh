#!/usr/bin/env bash
# The whole suite once more: under ASan and UBSan, under TSan, and built by clang. One line a preset;
# ZP_SANITIZERS names fewer ("asan tsan"). Each builds everything, so that a night is not too long;
# with ZP_LAYERS ("sim engine") only the tests of these layers are built and run.
set -uo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
failed=0
lines=()

# The tests of PRESET, all or those of ZP_LAYERS.
suite() {
  local layers=(${ZP_LAYERS:-}) labels
  ((${#layers[@]})) || { "$root/zp" test --preset "$1"; return; }
  "$root/zp" build "$1" $(printf 'zeroproof_%s_tests ' "${layers[@]}") || return
  labels=$(IFS='|'; echo "${layers[*]}")
  "$root/zp" test --preset "$1" --built -L "^($labels)\$"
}

for preset in ${ZP_SANITIZERS:-asan tsan clang}; do
  begin=$SECONDS
  suite "$preset" >"$ZP_OUT/$preset.txt" 2>&1
  code=$?
  ((code == 77)) && { echo "$preset: packages are missing"; exit 77; }
  ((code == 0)) || { failed=1; grep -A 40 'The following tests FAILED' "$ZP_OUT/$preset.txt"; }
  lines+=("$preset: $(grep -E '^[0-9]+% tests passed' "$ZP_OUT/$preset.txt" || echo 'no result'), $((SECONDS - begin)) s")
done
printf '%s\n' "${lines[@]}"
echo "$(git -C "$root" rev-parse --short HEAD 2>/dev/null): ${lines[*]}"
exit "$failed"
