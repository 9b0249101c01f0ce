#!/usr/bin/env bash
# The same seeds in two builds of the simulator, g++ and clang++: every decision, call and value of
# a million executions has to be the same (docs/spec/explorer.md T2). Each line of a build's log is the
# hash of 10,000 seeds, so the first line that differs says where to look; a log goes on where the
# run before was ended. ZP_DETERMINISM_SEEDS: by default 1000000. ZP_DETERMINISM_PRESETS: by default
# "release clang". ZP_DETERMINISM_WORKERS: processes, by default one a core.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
seeds=${ZP_DETERMINISM_SEEDS:-1000000}
read -r -a presets <<<"${ZP_DETERMINISM_PRESETS:-release clang}"
workers=${ZP_DETERMINISM_WORKERS:-$(nproc)}
block=10000
for preset in "${presets[@]}"; do
  [[ $preset != clang ]] || command -v clang++ >/dev/null || { echo "clang++ is not installed"; exit 77; }
  (cd "$root" && cmake --preset "$preset" -DZP_BUILD_TESTS=ON &&
    cmake --build "build/$preset" --target zeroproof_sim_tests) >"$ZP_OUT/build-$preset.txt" 2>&1 ||
    { tail -n 20 "$ZP_OUT/build-$preset.txt"; exit 1; }
done
hash_block() {  # PRESET FIRST
  local file="$ZP_OUT/$1/$2.txt"
  [[ -s $file ]] && return
  ZP_DETERMINISM_FIRST=$2 ZP_DETERMINISM_SEEDS=$block "$root/build/$1/bin/zeroproof_sim_tests" \
    --gtest_filter='SimWorldDeterminism.Seeds_that_are_asked_for_are_hashed' |
    grep "^seeds " >"$file.part" && mv "$file.part" "$file"
}
export -f hash_block
export root block
for preset in "${presets[@]}"; do
  mkdir -p "$ZP_OUT/$preset"
  seq 0 "$block" $((seeds - 1)) | xargs -P "$workers" -I{} bash -c "hash_block $preset {}"
  for ((first = 0; first < seeds; first += block)); do
    cat "$ZP_OUT/$preset/$first.txt"
  done >"$ZP_OUT/$preset.txt"
done
lines=$(wc -l <"$ZP_OUT/${presets[0]}.txt")
((lines * block >= seeds)) || { echo "only $lines blocks of $block seeds ran"; exit 1; }
for preset in "${presets[@]:1}"; do
  if ! cmp -s "$ZP_OUT/${presets[0]}.txt" "$ZP_OUT/$preset.txt"; then
    echo "${presets[0]} and $preset differ, first in:"
    diff "$ZP_OUT/${presets[0]}.txt" "$ZP_OUT/$preset.txt" | head -n 4
    exit 1
  fi
done
echo "$seeds seeds, builds ${presets[*]}: 0 differences; last: $(tail -n 1 "$ZP_OUT/${presets[0]}.txt")"
