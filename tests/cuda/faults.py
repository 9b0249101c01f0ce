#!/usr/bin/env python3
"""Planted faults on real GPUs: each row of tests/props/train_quirks.json is trained there, has to show its symptom
(gradients or parameters that differ from the baseline, or a run that fails), and its events are judged.

  tests/cuda/faults.py ZEROPROOF [--runtime cuda] [--world-size N] [--limit-s S]

One line a row: the fault, the scenario, the properties that name it, the symptom. Exit code 0 when at least 20 were named.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROWS = HERE.parent / "props" / "train_quirks.json"


def flags_of(row, options):
    flags = ["--scenario", row["scenario"], "--stage", str(row["stage"]), "--dtype", row["dtype"]]
    flags += ["--backward", row["backward"], "--runtime", options.runtime]
    flags += ["--world-size", str(options.world_size)]
    keys = {"quirk": "--quirks", "policy": "--policy", "api": "--autograd-api"}
    for key, flag in keys.items():
        if key in row:
            flags += [flag, row[key]]
    return flags


def run(zeroproof, row, options):
    """(exit code, the first difference, the properties that the recorded events break)"""
    command = [zeroproof, "train", *flags_of(row, options), "--check-properties", "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    try:
        report = json.loads(done.stdout)
    except json.JSONDecodeError:
        return done.returncode, done.stderr.strip().splitlines()[-1:], []
    properties = report.get("properties") or {}
    named = {finding["number"] for finding in properties.get("falsified", [])}
    return done.returncode, report.get("error") or "", sorted(named, key=lambda name: int(name[1:]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("zeroproof")
    parser.add_argument("--runtime", default="cuda")
    parser.add_argument("--world-size", type=int, default=1)
    parser.add_argument("--limit-s", type=float, default=200)
    options = parser.parse_args()
    end = time.monotonic() + options.limit_s
    shown = named = total = 0
    rows = [row for row in json.loads(ROWS.read_text())["rows"] if "quirk" in row or "policy" in row]
    for row in rows:
        if time.monotonic() > end:
            print("the time is over")
            break
        total += 1
        code, symptom, properties = run(options.zeroproof, row, options)
        shown += code == 1
        named += code == 1 and bool(properties)
        what = row.get("quirk") or row.get("policy")
        word = "shown" if code == 1 else "hidden"
        print(f"{word:7} {what:20} {row['scenario']:26} {' '.join(properties) or '-':14} {symptom}")
    print(f"{total} faults on {options.world_size} rank(s), runtime {options.runtime}: {shown} showed, {named} named by a property")
    return 0 if named >= 20 else 1


if __name__ == "__main__":
    sys.exit(main())
