#!/usr/bin/env bash
# The Python wheel: built, and tried in a bare environment of each Python that this machine has.
set -uo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
limit=15000000

# Debian's Python without python3-venv imports ensurepip, and makes no environment.
makes_environments() {
  local folder code
  folder=$(mktemp -d)
  "$1" -m venv "$folder/venv" >/dev/null 2>&1
  code=$?
  rm -rf "$folder"
  return $code
}

pythons=()
for python in ~/.pyenv/versions/3.1[0-9].*/bin/python /usr/bin/python3.1[0-9]; do
  makes_environments "$python" && pythons+=("$python")
done
((${#pythons[@]} > 0)) || { echo "no Python from 3.10 on makes environments"; exit 77; }

ZP_JOBS=${ZP_JOBS:-1} "$root/zp" wheel
case $? in 0) ;; 77) echo "no sources or packages to build with"; exit 77 ;; *) exit 1 ;; esac
wheel=$(ls -t "$root"/out/wheel/zeroproof-*.whl | head -n 1)
size=$(stat -c %s "$wheel")
bash "$root/tests/wheel/environments.sh" "$wheel" "${pythons[@]}" || exit 1
((size <= limit)) || { echo "$wheel has $size bytes, more than $limit"; exit 1; }
echo "$(basename "$wheel"): $size bytes, ${#pythons[@]} environments"
