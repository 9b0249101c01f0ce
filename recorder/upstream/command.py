"""Records a release of DeepSpeed and prints what it does otherwise than a known one: see run.sh."""

import argparse
import importlib.metadata
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
for folder in (HERE.parent / "hazards", HERE.parent / "jobs", HERE.parent, HERE):
    sys.path.insert(0, str(folder))

import forks
import hazards
import manager
import page
import programs
import suite
from changes import report
from digest import Digest, known_versions, path_of, read_digest, version_to_compare

PARTS = {"hazards": hazards, "manager": manager, "programs": programs, "suite": suite}
USED = (
    "torch",
    "torch._dynamo.testing",
    "functorch.compile",
    "torch.distributed.tensor.parallel",
    "torch._inductor.compile_fx",
    "deepspeed",
)


def parse():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder for what is recorded")
    parser.add_argument("--zeroproof", default="zeroproof", help="the command; empty: no replay")
    parser.add_argument("--against", help="known release")
    parser.add_argument("--parts", default=",".join(PARTS), help="with commas between")
    parser.add_argument("--write", action="store_true", help="keeps the digest as a known release")
    parser.add_argument("--again", action="store_true", help="only reads what is recorded in --out")
    parser.add_argument("--page", action="store_true", help="writes recorder/upstream/results.md")
    options = parser.parse_args()
    options.parts = options.parts.split(",")
    unknown = [part for part in options.parts if part not in PARTS]
    if unknown:
        parser.error(f"--parts knows {', '.join(PARTS)}, not '{unknown[0]}'")
    if options.against and options.against not in known_versions():
        parser.error(f"--against knows {', '.join(known_versions())}, not '{options.against}'")
    return options


def record(options, versions):
    """The digest of what is installed."""
    header = f"DeepSpeed {versions[0]}, torch {versions[1]}, CPU, gloo"
    digest = Digest(header)
    print(header, file=sys.stderr, flush=True)
    for part in options.parts:
        began = time.monotonic()
        if not options.again:
            PARTS[part].record(options.out / part, options.zeroproof)
        PARTS[part].read(digest, options.out / part, options.zeroproof)
        print(f"{part}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return digest


def compare(digest, version, options):
    """Prints what differs; the lines, and the release that they are compared with."""
    against = options.against or version_to_compare(version)
    if against is None:
        print(f"{digest.header}: no known release to compare with")
        return [], None
    old = read_digest(path_of(against))
    lines = list(report(old, digest))
    print(f"{digest.header}\nagainst {old.header}: {'differences' if lines else 'no difference'}")
    print("\n".join(lines))
    return lines, old.header


def main():
    """Records, compares and writes; the exit code."""
    options = parse()
    versions = [importlib.metadata.version(name) for name in ("deepspeed", "torch")]
    if not options.again:
        forks.preload(USED)
    digest = record(options, versions)
    (options.out / f"deepspeed-{versions[0]}.txt").write_text(digest.text())
    lines, against = compare(digest, versions[0], options)
    if options.page:
        page.write(digest.header, against, lines)
    if options.write:
        digest.write(path_of(versions[0]))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
