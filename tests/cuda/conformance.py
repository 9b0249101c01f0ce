#!/usr/bin/env python3
"""The trace of a runtime beside the simulator's: for the same model, configuration and seed the same order tokens, the
same collectives and the same bytes, on every rank.

  tests/cuda/conformance.py ZEROPROOF [--runtime cuda] [--world-size N] [--limit-s S] [--scenarios a,b] [--dtypes float32,bf16] [--jobs N]

Scenarios x stages x dtypes are recorded by both runtimes and compared byte by byte, but for the header; the decoders are
recorded beside the host, since the simulator trains scenarios. One line for each that differs, and a last one. Exit
code 0: all are equal, and at least one collective was compared.
"""
import argparse
import collections
import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROWS = pathlib.Path(__file__).resolve().parent.parent / "props" / "train_quirks.json"
STAGES = ("0", "1", "2", "3")
DECODERS = [["--model", "tiny", "--dtype", dtype, "--batch", "4", "--length", "32"] for dtype in ("float32", "bf16")]


def lines_of(path, is_exact):
    """All but the header, which names the runtime. Of a decoder, which the host trains as on a CPU and with its own rounding,
    neither the thread of a backward nor the norm of the gradients."""
    lines = path.read_text().splitlines()
    assert json.loads(lines[0])["rec"] == "header", path
    if is_exact:
        return lines[1:]
    return [re.sub(r'"th":\d+,?|(?<=grad_norm:)[^"]*', "", line) for line in lines[1:] if '"rec":"thread"' not in line]


def record(options, runtime, flags, path):
    command = [options.zeroproof, "train", *flags, "--world-size", str(options.world_size), "--trace", str(path)]
    command += ["--runtime", runtime, "--device", "cuda"]
    if runtime == "sim":
        command += ["--scheduler", "fifo"]
    return subprocess.run(command, capture_output=True, text=True)


def first_difference(left, right):
    for number, (x, y) in enumerate(zip(left, right), 2):
        if x != y:
            return f"line {number}: {x[:150]} beside {y[:150]}"
    return None if len(left) == len(right) else f"{len(left)} lines beside {len(right)}"


def compare(options, case):
    """(problem; events, collectives and bytes that are the same; None for a cell that both refuse)"""
    if time.monotonic() > options.end:
        return case, None, "late"
    reference, flags = case
    with tempfile.TemporaryDirectory() as scratch:
        folders = [pathlib.Path(scratch) / name for name in ("reference", "measured")]
        for folder in folders:
            folder.mkdir()
        runs = [record(options, runtime, flags, folder / "run.jsonl")
                for folder, runtime in zip(folders, (reference, options.runtime))]
        codes = [run.returncode for run in runs]
        if codes[0] != codes[1]:
            return case, f"exit codes {codes}: {(runs[1].stderr or runs[1].stdout).strip()[-300:]}", None
        counts = collections.Counter()
        for left in sorted(folders[0].iterdir()):
            same = lines_of(left, reference == "sim")
            problem = first_difference(same, lines_of(folders[1] / left.name, reference == "sim"))
            if problem:
                return case, f"{left.name} {problem}", None
            issued = [json.loads(line) for line in same if '"coll.issue"' in line]
            counts.update(traces=1, events=len(same), collectives=len(issued), bytes=sum(of["bytes"] for of in issued))
        return case, None, counts if codes[0] == 0 else None


def cases_of(options):
    names = options.scenarios.split(",") if options.scenarios else []
    for row in json.loads(ROWS.read_text())["rows"]:
        if not options.scenarios and row["scenario"] not in names:
            names.append(row["scenario"])
    cases = [("host", [*flags, "--stage", stage]) for flags in DECODERS for stage in STAGES]
    cases += [("sim", ["--scenario", name, "--stage", stage, "--dtype", dtype])
              for dtype in options.dtypes.split(",") for name in names for stage in STAGES]
    return cases


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("zeroproof")
    parser.add_argument("--runtime", default="cuda")
    parser.add_argument("--world-size", type=int, default=2)
    parser.add_argument("--limit-s", type=float, default=120)
    parser.add_argument("--scenarios", default="")
    parser.add_argument("--dtypes", default="float32,bf16")
    parser.add_argument("--jobs", type=int, default=8)
    options = parser.parse_args()
    options.end = time.monotonic() + options.limit_s
    total, equal, refused, late, different = collections.Counter(), 0, 0, 0, 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for case, problem, counts in pool.map(lambda case: compare(options, case), cases_of(options)):
            if counts == "late":
                late += 1
            elif problem:
                different += 1
                print(f"different  {' '.join(case[1])}: {problem}", flush=True)
            elif counts is None:
                refused += 1
            else:
                equal += 1
                total.update(counts)
    print(f"{equal} cells of {options.world_size} ranks: {total['traces']} traces of runtime {options.runtime} equal the simulator's: "
          f"{total['events']} events, {total['collectives']} collectives of {total['bytes']} bytes; {refused} refused by both, "
          f"{different} different, {late} not reached")
    return 0 if equal and not different and total["collectives"] else 1


if __name__ == "__main__":
    sys.exit(main())
