#!/usr/bin/env bash
# environment.sh releases PACKAGE: the releases of deepspeed, megatron-core or torch that the index has for
#   this Python, a line each, oldest first.
# environment.sh make PACKAGE VERSION [TORCH]: makes the environment of a release where there is none,
#   and prints two lines: its Python, and what PYTHONPATH begins with. TORCH: for the other packages;
#   the newest PyTorch without.
# `zeroproof bisect` runs it. Exit code 77: no such release can be installed here.
set -uo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
source "$here/environments.sh"

numpy_of() { # numpy_of TORCH: the one that its tests run with
  local numpy
  numpy=$(sed -n "s/^${1//./\\.}  *\([^ ]*\) .*/\1/p" "$here/tests/versions.txt")
  echo "${numpy:-numpy}"
}

releases() { # releases PACKAGE
  local any_python=()
  if [[ $1 == megatron-core ]]; then any_python=(--ignore-requires-python); fi  # make_megatron
  "${ZP_PYTHON:-python3.11}" -m pip index versions --disable-pip-version-check "${any_python[@]}" \
    "$1" 2>/dev/null |
    sed -n 's/^Available versions: //p' | tr -d ' ' | tr ',' '\n' | sort -V
}

make_release() { # make_release PACKAGE VERSION TORCH
  local torch=${3:-} layer=
  if [[ $1 == torch ]]; then torch=$2; fi
  torch=${torch:-$(newest_release torch)}
  mkdir -p "$envs" && make_torch "$torch" "$(numpy_of "$torch")" >&2 || return 77
  case $1 in
    deepspeed) make_deepspeed "$torch" "$2" >&2 || return 77; layer=$envs/ds-$2 ;;
    megatron-core) make_megatron "$torch" "$2" >&2 || return 77; layer=$envs/megatron-$2 ;;
  esac
  printf '%s\n%s\n' "$envs/torch-$torch/bin/python" "$layer"
}

case "${1:-} ${2:-}" in
  'releases deepspeed' | 'releases megatron-core' | 'releases torch') releases "$2" ;;
  'make deepspeed' | 'make megatron-core' | 'make torch') make_release "$2" "${3:?which release?}" "${4:-}" ;;
  *) sed -n '2,/^set /{/^# /s/^# //p}' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
