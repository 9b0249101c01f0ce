#!/usr/bin/env bash
# Where an iteration goes, kernel by kernel.
#
#   bench/cuda/kernels.sh ZEROPROOF train --runtime cuda --model m267 --dtype bf16 --batch 8 --length 1024 --steps 25 --time --warmup 10 ...
#
# Builds kernel_trace.cpp with the CUPTI of the CUDA toolkit, into $OUT or out/kernels, and prints kernel_table.py's table.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
cuda=${CUDA_HOME:-/usr/local/cuda}
out=${OUT:-$PWD/out/kernels}
(($# > 1)) || { sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 2; }
mkdir -p "$out"
"${CXX:-g++}" -shared -fPIC -O1 -std=c++20 -I"$cuda/include" "$here/kernel_trace.cpp" -o "$out/libkernel_trace.so" \
  -L"$cuda/lib" -L"$cuda/lib64" -lcupti
CUDA_INJECTION64_PATH="$out/libkernel_trace.so" ZP_KERNEL_TRACE="$out/kernels.tsv" "$@"
python3 "$here/kernel_table.py" "$out/kernels.tsv"
