#!/usr/bin/env python3
"""How often a rank calls CUDA's runtime and driver in an iteration of M267, beside the most that driver_calls.json allows.

  tests/cuda/driver_calls.py ZEROPROOF [--world-size N] [--names]

Each case of the file is trained twice, with more steps the second time; the calls of the steps between, by steps and ranks,
are counted (bench/cuda/kernel_trace.cpp), but for the questions of a host that waits. A line a case; --names: each function's share, and its ms (CUPTI's own included). Exit code 1 when a case calls
more often, 77 without CUPTI.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TRACE = HERE.parent.parent / "bench" / "cuda" / "kernel_trace.cpp"
STEPS = (8, 16)
POLL = "cudaEventQuery"  # again and again, by a host that is ahead of its GPU


def build(folder):
    cuda = pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))
    library = folder / "libkernel_trace.so"
    command = [os.environ.get("CXX", "g++"), "-shared", "-fPIC", "-O1", "-std=c++20", f"-I{cuda}/include", str(TRACE), "-o", str(library)]
    command += [f"-L{cuda}/lib", f"-L{cuda}/lib64", "-lcupti"]
    return library if subprocess.run(command, capture_output=True).returncode == 0 else None


def calls_of(options, library, flags, steps, folder):
    counts = folder / "counts.tsv"
    environment = dict(os.environ, CUDA_INJECTION64_PATH=str(library), ZP_CALL_COUNTS=str(counts))
    command = [options.zeroproof, "train", "--runtime", "cuda", "--model", "m267", "--dtype", "bf16", "--batch", "8", "--length", "512"]
    command += ["--world-size", str(options.world_size), "--steps", str(steps), "--time", "--warmup", "4", *flags]
    run = subprocess.run(command, env=environment, capture_output=True, text=True)
    if run.returncode != 0:
        raise RuntimeError((run.stderr or run.stdout).strip()[-300:])
    rows = (line.split("\t") for line in counts.read_text().splitlines())
    return {(kind, name): (int(count), int(ns)) for kind, name, count, ns in rows}


def difference(few, many, place, share):
    """By function: what `many` has more, of counts (place 0) or ns (1)."""
    return {key: (of[place] - few.get(key, (0, 0))[place]) / share for key, of in many.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("zeroproof")
    parser.add_argument("--world-size", type=int, default=2)
    parser.add_argument("--names", action="store_true")
    options = parser.parse_args()
    bad = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        library = build(folder)
        if library is None:
            print("skipped: no CUPTI to build with")
            return 77
        for case in json.loads((HERE / "driver_calls.json").read_text())["cases"]:
            few, many = (calls_of(options, library, case["flags"], steps, folder) for steps in STEPS)
            share = (STEPS[1] - STEPS[0]) * options.world_size
            by_name = difference(few, many, 0, share)
            ns = difference(few, many, 1, share)
            found = sum(count for (_, function), count in by_name.items() if not function.startswith(POLL))
            bad += found > case["most"]
            print(f"{'held' if found <= case['most'] else 'FAILED':7} {' '.join(case['flags']):24} {found:7.1f} calls an iteration and rank, "
                  f"{case['most']} allowed", flush=True)
            if options.names:
                for (kind, function), count in sorted(by_name.items(), key=lambda row: -row[1]):
                    if count > 0:
                        print(f"        {count:8.1f}  {ns[kind, function] / 1e6:8.3f} ms  {kind:8} {function}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
