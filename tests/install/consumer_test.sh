#!/usr/bin/env bash
# consumer_test.sh CMAKE BUILD_FOLDER COMPILER: installs the build into a temporary prefix, then
# configures, builds and runs examples/ as a project that knows the prefix alone.
set -euo pipefail
cmake=$1 build=$2 compiler=$3
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT

"$cmake" --install "$build" --prefix "$work/prefix" >"$work/install.log" ||
  { cat "$work/install.log"; exit 1; }
cp -r -- "$root/examples" "$work/examples"  # without the rest of the tree
flags=$(sed -n 's/^ZP_SANITIZE:STRING=\(..*\)/-fsanitize=\1/p' "$build/CMakeCache.txt")
"$cmake" -S "$work/examples" -B "$work/build" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" \
  -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_CXX_FLAGS="$flags"
"$cmake" --build "$work/build" --target train_two_ranks own_property
"$work/build/train_two_ranks" | grep -x 'the ranks agree'
"$work/build/own_property" "$work/examples/two_steps.json" | grep -x 'step.has_gradient: falsified'
"$work/prefix/bin/zeroproof" --version
