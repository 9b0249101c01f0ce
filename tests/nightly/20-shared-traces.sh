#!/usr/bin/env bash
# All shared traces: their programs run again (conform), and their managers' calls (replay).
set -uo pipefail
traces=$ZP_SHARED/traces
if [[ ! -d $traces ]]; then
  echo "there are no shared traces in $traces: set ZP_SHARED to a folder that has traces/"
  exit 77
fi
result=0
for folder in "$traces"/pytorch-* "$traces"/deepspeed-*; do
  [[ -d $folder ]] || continue
  name=$(basename "$folder")
  "$ZP_COMMAND" conform "$folder" --progress none --color never >"$ZP_OUT/$name.txt" 2>&1
  code=$?
  ((code == 0)) || { result=$code; cat "$ZP_OUT/$name.txt"; }
  lines+="${lines:+; }$name: $(tail -n 1 "$ZP_OUT/$name.txt")"
done
for folder in "$traces"/manager-*; do
  [[ -d $folder ]] || continue
  name=$(basename "$folder")
  "$ZP_COMMAND" replay "$folder" --levels queue,state --progress none --color never \
    >"$ZP_OUT/$name.txt" 2>&1
  code=$?
  ((code == 0)) || { result=$code; cat "$ZP_OUT/$name.txt"; }
  lines+="${lines:+; }$name: $(tail -n 1 "$ZP_OUT/$name.txt")"
done
echo "${lines:-no folder of traces in $traces}"
exit "$result"
