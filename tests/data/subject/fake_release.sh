#!/bin/sh
# Environments of releases without PyTorch. As a maker: `releases` and `make`; as the Python of a
# release, whose number is what PYTHONPATH begins with: a subject that differs from 0.2.0 to 0.3.9.
here=$(dirname "$0")
case $1 in
  releases) printf '0.1.0\n0.1.1\n0.1.2\n0.2.0\n0.2.1\n0.3.0\n0.3.9\n0.4.0\n0.4.1\n9.0.0\n'; exit 0 ;;
  make)
    [ "$3" != 0.2.1 ] || { echo "no wheel of $2 $3 for torch $4" >&2; exit 77; }
    printf '%s\n%s\n' "$0" "$3"
    exit 0 ;;
esac
engine=equal
case $PYTHONPATH in 0.[23].*) engine=differs ;; esac
[ "$3" = serve ] || exit 2
exec "$here/fake_subject.py" -m zeroproof_subject serve --engine $engine
