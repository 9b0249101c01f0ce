#!/usr/bin/env bash
# environments.sh WHEEL PYTHON...: installs the wheel into a bare environment of each Python and runs
# its commands where neither this tree nor Debian's libraries can help. One line an environment.
set -uo pipefail

wheel=$1
shift
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
folder=$(mktemp -d) && trap 'rm -rf -- "$folder"' EXIT
trace=deepspeed-edaa7221-cuda/two_losses_retain__z1_fp32_w1_r0.jsonl.gz

fails() { printf 'FAILED   %s: %s\n' "$1" "$2"; code=1; }

# Runs a command with an empty folder in place of the tree, where this machine allows that.
hidden() {
  if unshare --mount true 2>/dev/null; then
    unshare --mount bash -c 'mount --make-rprivate / && mount -t tmpfs none "$1" && shift && "$@"' \
      _ "$root" "$@"
  else
    "$@"
  fi
}

check_environment() {  # PYTHON
  local home=$folder/$2 python=$1 traces
  "$python" -m venv "$home" && "$home/bin/pip" install --quiet --no-index --disable-pip-version-check "$wheel" ||
    { fails "$2" "cannot be installed"; return; }
  ldd "$home"/lib/python*/site-packages/zeroproof/bin/zeroproof |
    grep -vE 'linux-vdso|ld-linux|lib(c|m|gcc_s)\.so' && fails "$2" "needs a library of this machine"
  traces=$(echo "$home"/lib/python*/site-packages/zeroproof/share/zeroproof/traces)
  cd "$folder" || exit 1
  hidden "$home/bin/zeroproof" --version >out.txt 2>&1 || fails "$2" "--version: $(cat out.txt)"
  hidden "$home/bin/zeroproof" explore S2 --policy deepspeed-0.18.3 >out.txt 2>&1
  [[ $? == 1 ]] && grep -q '^FALSIFIED P2 ' out.txt || fails "$2" "explore: $(cat out.txt)"
  hidden "$home/bin/zeroproof" replay "$traces/$trace" >out.txt 2>&1
  [[ $? == 1 ]] && grep -q 'FALSIFIED P28 ' out.txt || fails "$2" "replay: $(cat out.txt)"
  hidden "$home/bin/zeroproof" doctor >out.txt 2>&1 || fails "$2" "doctor: $(cat out.txt)"
  grep -q "$traces" out.txt || fails "$2" "doctor does not find the bundled traces: $(cat out.txt)"
  for module in zeroproof_recorder zeroproof_subject; do
    hidden "$home/bin/python" -m $module --help >out.txt 2>&1 || fails "$2" "$module: $(cat out.txt)"
  done
  "$home/bin/python" --version | sed 's/^/tried    /'
}

code=0
for python in "$@"; do check_environment "$python" "$("$python" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])')"; done
exit $code
