#!/usr/bin/env bash
# consumer_test.sh CMAKE BUILD_FOLDER COMPILER: installs the build into a temporary prefix, then
# configures, builds and runs a project that knows the prefix alone.
set -euo pipefail
cmake=$1 build=$2 compiler=$3
source=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT

"$cmake" --install "$build" --prefix "$work/prefix" >"$work/install.log" ||
  { cat "$work/install.log"; exit 1; }
flags=$(sed -n 's/^ZP_SANITIZE:STRING=\(..*\)/-fsanitize=\1/p' "$build/CMakeCache.txt")
"$cmake" -S "$source" -B "$work/build" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" \
  -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_CXX_FLAGS="$flags"
"$cmake" --build "$work/build"
"$work/build/consumer" | grep -x exact
"$work/prefix/bin/zeroproof" --version
