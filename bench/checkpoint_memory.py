#!/usr/bin/env python3
"""Memory and time of checkpoints of shards by size, and what resharding keeps.

bench/checkpoint_memory.py [--build build/release] [--sizes 256,512,1024,2048] [--limit-mib 256] [--folder DIR]

A size is what the checkpoint takes in MiB: 12 bytes a parameter (float32 masters and Adam's two states). For
each one, two ranks of stage 3 (threads of one process) load a checkpoint with drawn values and save it again
while RLIMIT_DATA is what the process held before and --limit-mib. A line says what was held, how much more
was resident at the peak, and the time by MiB as a multiple of the first size's: no time is a gate. Then a
checkpoint goes from 1 to 4 to 3 ranks of stage 3 to 2 ranks of stage 1, and the tensors of all five
checkpoints, made whole by `zeroproof checkpoint convert`, must have the same bytes.
Exit code 1: a run ended for want of memory, or bytes differ.
"""

import argparse
import filecmp
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BYTES_OF_PARAMETER = 12


class Bench:
    """The programs of a build, and a folder for checkpoints."""

    def __init__(self, build, folder):
        self.bench = build / "bin/zeroproof_checkpoint_bench"
        self.command = build / "bin/zeroproof"
        self.folder = folder

    def make(self, name, elements):
        """A checkpoint of one rank with drawn values."""
        subprocess.run([self.bench, "make", self.folder / name, str(elements)], check=True)

    def reshard(self, source, target, elements, ranks, stage, limit_mib):
        """Loads and saves; None where it failed."""
        words = [self.folder / source, self.folder / target if target else "", elements, ranks, stage, limit_mib]
        done = subprocess.run(
            [self.bench, "reshard", *map(str, words)], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            print(f"  ended with {done.returncode}: {done.stderr.strip()}")
            return None
        return {line["what"]: line for line in map(json.loads, done.stdout.splitlines())}

    def whole(self, name):
        """The tensors of a checkpoint of shards, in the universal layout."""
        to = self.folder / f"{name}-whole"
        subprocess.run(
            [self.command, "checkpoint", "convert", self.folder / name, to, "--to", "universal"],
            check=True, stdout=subprocess.DEVNULL,
        )
        return to / "global_step3" / "zero"

    def remove(self, *names):
        """Frees their room."""
        for name in names:
            shutil.rmtree(self.folder / name, ignore_errors=True)
            shutil.rmtree(self.folder / f"{name}-whole", ignore_errors=True)


def same_tensors(a, b):
    """Whether two folders have the same files with the same bytes, and some."""
    files = sorted(path.relative_to(a) for path in a.rglob("*.tensor"))
    others = sorted(path.relative_to(b) for path in b.rglob("*.tensor"))
    return bool(files) and files == others and all(filecmp.cmp(a / f, b / f, shallow=False) for f in files)


def measure_size(bench, size_mib, limit_mib):
    """One line of the table; None where memory did not suffice or bytes differ."""
    elements = size_mib * 2**20 // BYTES_OF_PARAMETER
    bench.make("made", elements)
    found = bench.reshard("made", "saved", elements, 2, 3, limit_mib)
    if found is not None and not same_tensors(bench.whole("made"), bench.whole("saved")):
        print("  what was saved differs from what was loaded")
        found = None
    bench.remove("made", "saved")
    return found and {"elements": elements, **found}


def print_size(size_mib, line, first):
    """Times as multiples of those of the first size, by MiB."""
    cells = [f"{size_mib:>6}", f"{line['elements'] / 1e6:>7.1f}"]
    for what in ("load", "save"):
        one, base = line[what], first[1][what]
        more = (one["resident_peak_kib"] - one["resident_before_kib"]) / 1024
        factor = one["seconds"] / size_mib / (base["seconds"] / first[0])
        cells += [f"{one['data_before_kib'] / 1024:>8.0f}", f"{more:>7.0f}", f"{one['seconds']:>7.1f}", f"{factor:>6.2f}"]
    print("  ".join(cells), flush=True)


def measure_sizes(bench, sizes, limit_mib):
    """The table; whether every size had enough."""
    print("   MiB  M param  held MiB  load+MiB  s  s/MiB  held MiB  save+MiB  s  s/MiB")
    first = None
    has_all = True
    for size in sizes:
        line = measure_size(bench, size, limit_mib)
        if line is None:
            has_all = False
            continue
        first = first or (size, line)
        print_size(size, line, first)
    return has_all


def measure_resharding(bench, size_mib, limit_mib):
    """Whether every checkpoint on the way has the same tensors."""
    elements = size_mib * 2**20 // BYTES_OF_PARAMETER
    bench.make("one", elements)
    way = [("one", "from1", 1, 3), ("from1", "from4", 4, 3), ("from4", "from3", 3, 3), ("from3", "stage1", 2, 1)]
    right = True
    for source, target, ranks, stage in way:
        is_same = bench.reshard(source, target, elements, ranks, stage, limit_mib) is not None
        is_same = is_same and same_tensors(bench.whole("one"), bench.whole(target))
        shutil.rmtree(bench.folder / "one-whole", ignore_errors=True)
        print(f"{source} -> {ranks} ranks of stage {stage}: {'the same bits' if is_same else 'DIFFERS'}", flush=True)
        right = right and is_same
    bench.remove("one", *(target for _, target, _, _ in way))
    return right


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=ROOT / "build/release", type=Path)
    parser.add_argument("--sizes", default="256,512,1024,2048")
    parser.add_argument("--reshard-mib", default=128, type=int)
    parser.add_argument("--limit-mib", default=256, type=int)
    parser.add_argument("--folder", default=os.environ.get("TMPDIR", "/tmp"), type=Path)
    words = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=words.folder) as folder:
        bench = Bench(words.build, Path(folder))
        sizes = [int(size) for size in words.sizes.split(",") if size]
        right = measure_sizes(bench, sizes, words.limit_mib) if sizes else True
        right = measure_resharding(bench, words.reshard_mib, words.limit_mib) and right
    sys.exit(0 if right else 1)


if __name__ == "__main__":
    main()
