#!/usr/bin/env bash
# Builds fused_kernels_check without CMake: nvcc for the kernels, g++ for the rest.
# OUT (default build/cuda) gets the objects and the program.
set -euo pipefail
cd "$(dirname -- "${BASH_SOURCE[0]}")/../.."
out=${OUT:-build/cuda}
cuda=${CUDA_HOME:-/usr/local/cuda}
mkdir -p "$out"
objects=()
# build OBJECT SOURCE COMMAND...: only when something it may depend on is newer
build() {
  local object=$1 source=$2
  shift 2
  objects+=("$object")
  if [[ -f $object && -z $(find "$source" engine/runtime/cuda tests/cuda \( -name '*.h' -o -name '*.cuh' -o -samefile "$source" \) -newer "$object" -print -quit) ]]; then
    return
  fi
  echo "$source"
  "$@" -c "$source" -o "$object"
}
for source in engine/runtime/cuda/fused/*.cu; do
  build "$out/$(basename "$source").o" "$source" \
    "$cuda/bin/nvcc" -arch=sm_90 -std=c++20 -O3 -lineinfo -I. -Xcompiler -Wall,-Wextra ${NVCC_FLAGS:-}
done
for source in engine/runtime/cuda/fused/*.cpp tests/cuda/*.cpp; do
  build "$out/$(basename "$source").o" "$source" \
    g++ -std=c++20 -O2 -Wall -Wextra -I. -isystem "$cuda/include"
done
g++ "${objects[@]}" -o "$out/fused_kernels_check" -static-libstdc++ -static-libgcc \
  -L"$cuda/lib64" -lcudart_static -lcublasLt -lcudnn -ldl -lpthread -lrt \
  -Wl,-rpath,"$cuda/lib64"
echo "$out/fused_kernels_check"
