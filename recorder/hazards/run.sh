#!/usr/bin/env bash
# run.sh [hNN...]: the hazards of zero_semantics 9 on the DeepSpeed of $ZP_TORCH_PYTHON; one line a case.
# With $ZP_ZEROPROOF, a built zeroproof, also those that `zeroproof export` writes as scripts.
# Exit code 0: every case shows its hazard; 77: no PyTorch or no DeepSpeed there.
set -u
cd -- "$(dirname -- "${BASH_SOURCE[0]}")" || exit 2
python=${ZP_TORCH_PYTHON:-/opt/torch/bin/python}
versions='import logging; logging.disable(50); import deepspeed, torch; print(deepspeed.__version__, torch.__version__)'
version=$("$python" -c "$versions" 2>/dev/null | tail -1)
[ -n "$version" ] || { echo "SKIP: $python has no DeepSpeed"; exit 77; }
echo "DeepSpeed ${version% *}, torch ${version#* }, CPU, gloo"
failed=0

# exported HAZARD PROPERTY TARGET...: what the exported script says about the property.
exported() {
  local hazard=$1 property=$2 script output word="not shown"
  shift 2
  script=$(mktemp --suffix=.py)
  "$ZP_ZEROPROOF" export --torch "$@" --out "$script" >/dev/null || failed=1
  output=$(timeout 180 "$python" "$script" 2>/dev/null)
  grep -q '^SYMPTOM' <<<"$output" && word=CONFIRMED || failed=1
  line() { sed -n "s/^$1  $property: //p" <<<"$output" | head -1; }
  echo "$hazard $word (export --torch $*): observed $property: $(line observed); expected $(line expected)"
  rm -f "$script"
}

if [ $# -eq 0 ]; then
  set -- h[0-9]*.py
  if [ -n "${ZP_ZEROPROOF:-}" ]; then
    exported H1 P12 S7b --policy pr7886
    exported H2 P1 S5 --policy pr7886
    exported H2 P1 S13 --policy pr7886
    exported H25 P1 S14 --policy pr7886 --stage 3 --mode count_fallback --no-minimize
    exported H26 P1 S18 --policy pr7886 --mode count_fallback
  fi
fi
for script in "$@"; do
  output=$(timeout 180 "$python" "${script%.py}.py" 2>&1) || { failed=1; echo "${script%.py}: exit code $?"; }
  grep -E '^H[0-9]+ ' <<<"$output" || { failed=1; tail -5 <<<"$output"; }
done
exit $failed
