#!/usr/bin/env python3
"""Faults on real GPUs: each row of tests/props/train_quirks.json, and on two ranks of woven_faults.json, is
trained there, and its events are judged.

  tests/cuda/faults.py ZEROPROOF [--runtime cuda] [--world-size N] [--limit-s S] [--jobs N] [--only woven|quirks]

One line a row: the fault, the scenario, the properties that name it, the symptom: a gradient or parameter that differs
from the baseline, or how the run failed. A race may be named without a symptom: the GPU was in time. Exit code 0 when
at least 20 were named (all, where one file alone runs).
"""
import argparse
import concurrent.futures
import json
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
QUIRKS = HERE.parent / "props" / "train_quirks.json"
WOVEN = HERE / "woven_faults.json"


def flags_of(row, options):
    flags = ["--scenario", row["scenario"], "--stage", str(row["stage"]), "--runtime", options.runtime]
    flags += ["--world-size", str(options.world_size), "--timeout", "10"]
    keys = {"quirk": "--quirks", "policy": "--policy", "api": "--autograd-api", "fault": "--fault", "dtype": "--dtype",
            "backward": "--backward", "config": "--ds-config"}
    for key, flag in keys.items():
        if key in row:
            flags += [flag, row[key]]
    return flags


def run(row, options):
    """(exit code, the symptom, the properties that the recorded events break); None: no time was left"""
    if time.monotonic() > options.end:
        return None
    command = [options.zeroproof, "train", *flags_of(row, options), "--check-properties", "--json"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        report = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        return 1, "did not end within 60 s", []
    except json.JSONDecodeError:
        return done.returncode, " ".join(done.stderr.strip().splitlines()[-1:]), []
    properties = report.get("properties") or {}
    named = {finding["number"] for finding in properties.get("falsified", [])}
    return done.returncode, report.get("error") or "", sorted(named, key=lambda name: int(name[1:]))


def rows_of(options, folder):
    rows = []
    if options.only != "woven":
        rows += [row for row in json.loads(QUIRKS.read_text())["rows"] if "quirk" in row or "policy" in row]
    if options.only != "quirks" and options.world_size > 1:
        document = json.loads(WOVEN.read_text())
        path = pathlib.Path(folder) / "config.json"
        path.write_text(json.dumps(document["config"]))
        rows += [dict(row, config=str(path)) for row in document["rows"]]
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("zeroproof")
    parser.add_argument("--runtime", default="cuda")
    parser.add_argument("--world-size", type=int, default=1)
    parser.add_argument("--limit-s", type=float, default=200)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", choices=["woven", "quirks"])
    options = parser.parse_args()
    options.end = time.monotonic() + options.limit_s
    shown = named = both = total = 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        rows = rows_of(options, folder)
        for row, result in zip(rows, pool.map(lambda row: run(row, options), rows)):
            if result is None:
                continue
            code, symptom, properties = result
            has_shown = code == 1 and bool(symptom)
            has_name = code == 1 and bool(properties)
            total += 1
            shown += has_shown
            named += has_name
            both += has_shown and has_name
            what = row.get("fault") or row.get("quirk") or row.get("policy")
            word = "shown" if has_shown else "named" if has_name else "hidden"
            print(f"{word:7} {what:20} {row['scenario']:26} {' '.join(properties) or '-':14} {symptom[:140]}", flush=True)
    print(f"{total} faults on {options.world_size} rank(s), runtime {options.runtime}: {shown} showed, {named} named by a property, "
          f"{both} both; {len(rows) - total} not reached")
    return 0 if named >= (min(20, total) if options.only else 20) else 1


if __name__ == "__main__":
    sys.exit(main())
