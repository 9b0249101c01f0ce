#!/usr/bin/env python3
"""write_matrix.py MATRIX.json ZEROPROOF: the data of docs/PROPERTY_CHECK.md.

MATRIX.json is what `zeroproof mutation --matrix --json` printed. Every fault whose row has one property alone is
hunted again without that property, and what finds it then joins its row. Ten that escape are what the test repeats.
"""

import json
import pathlib
import subprocess
import sys

CASES = 400  # of one hunt; kRemovalCases of property_check_test.cpp
REMOVALS = 10
HERE = pathlib.Path(__file__).parent


def hunt(zeroproof, fault, *flags):
    command = [
        zeroproof,
        "mutation",
        fault,
        "--quick",
        "--workers",
        "1",
        "--unmutated",
        "1x",
        "--json",
    ]
    command += ["--budget", f"{CASES}x,600s", *flags]
    return json.loads(
        subprocess.run(command, capture_output=True, text=True, check=False).stdout
    )["faults"][0]


def write(name, opening, lines, closing):
    (HERE / name).write_text(opening + "\n" + ",\n".join(lines) + "\n" + closing + "\n")


def main(matrix_file, zeroproof):
    faults = json.loads(pathlib.Path(matrix_file).read_text())["faults"]
    matrix = {fault["id"]: fault["falsified"] for fault in faults if fault["found"]}
    escaped = []
    for fault, numbers in matrix.items():
        if len(numbers) > 1:
            continue
        found = hunt(zeroproof, fault, "--without", numbers[0])
        print(fault, "without", numbers[0], found.get("property"), flush=True)
        if found["found"]:
            matrix[fault] = sorted({*numbers, *found["falsified"]})
        else:
            escaped.append({"fault": fault, "without": numbers[0]})
    seen = [row["without"] for row in escaped]
    turn = [
        seen[:at].count(number) for at, number in enumerate(seen)
    ]  # one of each property first
    removals = []
    for _, row in sorted(zip(turn, escaped), key=lambda pair: pair[0]):
        found = hunt(zeroproof, row["fault"])
        if found["found"] and len(removals) < REMOVALS:
            removals.append({**row, "executions": found["executions"]})
    write(
        "matrix.json",
        "{",
        [f' "{fault}": {json.dumps(row)}' for fault, row in matrix.items()],
        "}",
    )
    write("removals.json", "[", [" " + json.dumps(row) for row in removals], "]")


main(*sys.argv[1:])
