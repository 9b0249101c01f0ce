#!/usr/bin/env bash
# Upstream's hazards: each is found by the hunt, and DeepSpeed still does what docs/HAZARDS.md says of it.
set -uo pipefail
tree=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
"$ZP_COMMAND" museum --hazards --healthy 1x --progress none --color never >"$ZP_OUT/hunt.txt"
code=$?
cat "$ZP_OUT/hunt.txt"
found=$(grep ' entries modelled, ' "$ZP_OUT/hunt.txt" | sed 's/ entries modelled, / modelled, /; s/;.*//')
ZP_ZEROPROOF=$ZP_COMMAND "$tree/recorder/hazards/run.sh" | tee "$ZP_OUT/deepspeed.txt"
upstream=${PIPESTATUS[0]}
[ "$upstream" -eq 0 ] || [ "$upstream" -eq 77 ] || code=1
if [ "$upstream" -eq 77 ]; then
  echo "hazards: $found; no DeepSpeed here"
elif [ "$(head -1 "$ZP_OUT/deepspeed.txt")" = "$(head -1 "$tree/tests/data/hazards/deepspeed.txt")" ] &&
  ! diff "$tree/tests/data/hazards/deepspeed.txt" "$ZP_OUT/deepspeed.txt"; then
  echo "hazards: $found; DeepSpeed did something else than docs/HAZARDS.md says"
  code=1
else
  echo "hazards: $found; $(grep -c ' CONFIRMED ' "$ZP_OUT/deepspeed.txt") cases confirmed on $(head -1 "$ZP_OUT/deepspeed.txt")"
fi
exit "$code"
