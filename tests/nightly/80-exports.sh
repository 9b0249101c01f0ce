#!/usr/bin/env bash
# Exported findings on real DeepSpeed and PyTorch: each row of exports.txt has to show its symptom, or
# none. ZP_TORCH_PYTHON: a Python with PyTorch and DeepSpeed (default python3; 77 where it has none).
# ZP_DEEPSPEEDS: a folder with other versions, as ds-0.18.3 and ds-0.18.5 (pip install --target
# DIR/ds-VERSION --no-deps deepspeed==VERSION); rows whose version is not there are left out.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
python=${ZP_TORCH_PYTHON:-python3}
folder=${ZP_DEEPSPEEDS:-}
"$python" -c 'import torch, deepspeed' >/dev/null 2>&1 || { echo "$python has no torch and deepspeed"; exit 77; }
result=0
shown=0
row=0
while read -r version code arguments; do
  [[ -n $version && $version != '#'* ]] || continue
  ((row += 1))
  path=
  if [[ $version != current && $version != torch ]]; then
    path=$folder/ds-$version
    [[ -n $folder && -d $path ]] || { echo "left out: DeepSpeed $version is not in \$ZP_DEEPSPEEDS: $arguments"; continue; }
  fi
  # shellcheck disable=SC2086 # the arguments are words
  (cd "$root" && "$ZP_COMMAND" export --torch $arguments --out "$ZP_OUT/$row.py") >"$ZP_OUT/$row.txt" 2>&1 ||
    { result=1; cat "$ZP_OUT/$row.txt"; continue; }
  PYTHONPATH=$path timeout 120 "$python" "$ZP_OUT/$row.py" >"$ZP_OUT/$row.txt" 2>"$ZP_OUT/$row.err"
  got=$?
  echo "exit $got: export --torch $arguments (DeepSpeed $version)"
  grep -m 2 -E '^(observed|expected)' "$ZP_OUT/$row.txt" | sed 's/^/    /' | cut -c1-160
  ((got == code)) || { result=1; echo "    wanted exit $code"; tail -n 5 "$ZP_OUT/$row.err"; }
  ((shown += got == 1))
done <"$root/tests/nightly/exports.txt"
echo "$row exports, $shown show their symptom"
exit "$result"
