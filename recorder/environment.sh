#!/usr/bin/env bash
# environment.sh releases PACKAGE: the releases of deepspeed or torch that the package index has for
#   this Python, a line each, oldest first.
# environment.sh make PACKAGE VERSION [TORCH]: makes the environment of a release where there is none,
#   and prints two lines: its Python, and what PYTHONPATH begins with. TORCH: for deepspeed; the newest
#   PyTorch without.
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
  "${ZP_PYTHON:-python3.11}" -m pip index versions --disable-pip-version-check "$1" 2>/dev/null |
    sed -n 's/^Available versions: //p' | tr -d ' ' | tr ',' '\n' | sort -V
}

make_release() { # make_release PACKAGE VERSION TORCH
  local torch=${3:-} layer=
  if [[ $1 == torch ]]; then torch=$2; fi
  torch=${torch:-$(newest_release torch)}
  mkdir -p "$envs" && make_torch "$torch" "$(numpy_of "$torch")" >&2 || return 77
  if [[ $1 == deepspeed ]]; then
    make_deepspeed "$torch" "$2" >&2 || return 77
    layer=$envs/ds-$2
  fi
  printf '%s\n%s\n' "$envs/torch-$torch/bin/python" "$layer"
}

case "${1:-} ${2:-}" in
  'releases deepspeed' | 'releases torch') releases "$2" ;;
  'make deepspeed' | 'make torch') make_release "$2" "${3:?which release?}" "${4:-}" ;;
  *) sed -n '2,/^set /{/^# /s/^# //p}' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
