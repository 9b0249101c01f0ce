#!/usr/bin/env bash
# Upstream's hazards: each is found by the hunt, and DeepSpeed still does what docs/reference/hazards.md says of its
# release. ZP_TORCH_PYTHON: a Python with PyTorch and DeepSpeed.
set -uo pipefail
tree=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
"$ZP_COMMAND" mutation --hazards --unmutated 1x --progress none --color never >"$ZP_OUT/hunt.txt"
code=$?
cat "$ZP_OUT/hunt.txt"
found=$(grep ' faults found' "$ZP_OUT/hunt.txt")
ZP_ZEROPROOF=$ZP_COMMAND "$tree/recorder/hazards/run.sh" 2>"$ZP_OUT/differences.txt" | tee "$ZP_OUT/deepspeed.txt"
upstream=${PIPESTATUS[0]}
cat "$ZP_OUT/differences.txt"
if [ "$upstream" -eq 77 ]; then
  echo "hazards: $found; no DeepSpeed here"
elif [ "$upstream" -ne 0 ]; then
  echo "hazards: $found; $(head -1 "$ZP_OUT/deepspeed.txt"): not what its table says"
  code=1
else
  echo "hazards: $found; $(grep -c ' CONFIRMED ' "$ZP_OUT/deepspeed.txt") cases confirmed on $(head -1 "$ZP_OUT/deepspeed.txt")"
fi
exit "$code"
