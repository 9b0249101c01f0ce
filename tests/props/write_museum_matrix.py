#!/usr/bin/env python3
"""write_museum_matrix.py MATRIX.json ZEROPROOF: the data of docs/PROPERTY_CHECK.md.

MATRIX.json is what `zeroproof museum --matrix --json` printed. Every entry whose row has one property alone is
hunted again without that property, and what finds it then joins its row. Ten that escape are what the test repeats.
"""

import json
import pathlib
import subprocess
import sys

CASES = 400  # of one hunt; kRemovalCases of property_check_test.cpp
REMOVALS = 10
HERE = pathlib.Path(__file__).parent


def hunt(zeroproof, entry, *flags):
    command = [
        zeroproof,
        "museum",
        entry,
        "--quick",
        "--workers",
        "1",
        "--healthy",
        "1x",
        "--json",
    ]
    command += ["--budget", f"{CASES}x,600s", *flags]
    return json.loads(
        subprocess.run(command, capture_output=True, text=True, check=False).stdout
    )["entries"][0]


def write(name, opening, lines, closing):
    (HERE / name).write_text(opening + "\n" + ",\n".join(lines) + "\n" + closing + "\n")


def main(matrix_file, zeroproof):
    entries = json.loads(pathlib.Path(matrix_file).read_text())["entries"]
    matrix = {entry["id"]: entry["falsified"] for entry in entries if entry["found"]}
    escaped = []
    for entry, numbers in matrix.items():
        if len(numbers) > 1:
            continue
        found = hunt(zeroproof, entry, "--without", numbers[0])
        print(entry, "without", numbers[0], found.get("property"), flush=True)
        if found["found"]:
            matrix[entry] = sorted({*numbers, *found["falsified"]})
        else:
            escaped.append({"entry": entry, "without": numbers[0]})
    seen = [row["without"] for row in escaped]
    turn = [
        seen[:at].count(number) for at, number in enumerate(seen)
    ]  # one of each property first
    removals = []
    for _, row in sorted(zip(turn, escaped), key=lambda pair: pair[0]):
        found = hunt(zeroproof, row["entry"])
        if found["found"] and len(removals) < REMOVALS:
            removals.append({**row, "executions": found["executions"]})
    write(
        "museum_matrix.json",
        "{",
        [f' "{entry}": {json.dumps(row)}' for entry, row in matrix.items()],
        "}",
    )
    write("museum_removals.json", "[", [" " + json.dumps(row) for row in removals], "]")


main(*sys.argv[1:])
