"""Runs hazard scripts and reports of each case whether this DeepSpeed shows it: see run.sh."""

import argparse
import importlib.metadata
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
TREE = HERE.parents[1]
sys.path[:0] = [str(HERE), str(HERE.parent / "jobs")]

import forks
import pairs
from table import Case, differences, parse_case, read_cases, table_of

SKIPPED = 77
TIMEOUT_S = 180
USED = ("torch", "torch._dynamo", "deepspeed")


def run_ranks(script, world):
    """Runs a script on forked ranks; the worst exit code, rank 0's stdout, all of stderr."""
    port = pairs.free_port()
    ranks = [
        forks.ForkedRank([str(script)], pairs.environment(rank, world, port), TIMEOUT_S)
        for rank in range(world)
    ]
    texts = [rank.communicate(TIMEOUT_S) for rank in ranks]
    code = next((rank.returncode for rank in ranks if rank.returncode), 0)
    return code, texts[0][0], "".join(errors for _, errors in texts)


def crash(hazard, script, code, errors):
    """A case for a script that ended before it had said everything."""
    last = ([line for line in errors.splitlines() if line.strip()] or ["no output"])[-1]
    return Case(hazard, "crashed", script, f"exit code {code}: {last.strip()[:150]}", "no crash")


def cases_of_script(path):
    """The cases of a script of this folder."""
    world = 2 if re.search(r"^WORLD = 2$", path.read_text(), re.M) else 1
    code, output, errors = run_ranks(path, world)
    found = {case.key: case for case in map(parse_case, output.splitlines()) if case}
    may_crash = [case for case in found.values() if case.word == "may crash"]
    cases = [_ended(case, code).checked() for case in found.values()]
    if not cases or code and not may_crash:
        hazard = path.stem[0].upper() + str(int(path.stem[1:]))
        cases.append(crash(hazard, path.name, code, errors))
    return cases


def _ended(case, code):
    """The case, or what became of one that ended the process."""
    if case.word != "may crash":
        return case
    return replace(case, word="CONFIRMED") if code < 0 else replace(case, word="fails")


def exports():
    """Hazard, properties and arguments of each line of exports.txt."""
    for line in (HERE / "exports.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            hazard, properties, arguments = line.split(maxsplit=2)
            yield hazard, properties.split(","), arguments


def cases_of_export(zeroproof, hazard, properties, arguments):
    """One case a property: what the exported script says of this property and no other."""
    name = f"export --torch {arguments}"
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "exported.py"
        made = subprocess.run(
            [zeroproof, *name.split(), "--out", str(script)],
            capture_output=True,
            text=True,
            cwd=TREE,
        )
        if made.returncode:
            return [crash(hazard, name, made.returncode, made.stderr)]
        code, output, errors = run_ranks(script, 1)
    if code not in (0, 1):
        return [crash(hazard, name, code, errors)]
    return [_case_of_property(hazard, name, output, number) for number in properties]


def _case_of_property(hazard, name, output, number):
    found = re.search(rf"^observed  {number}: (.*)\nexpected  {number}: (.*)$", output, re.M)
    case = f"{name}: {number}"
    if not found:
        return Case(hazard, "absent", case, f"{number} holds", f"{number} holds")
    return Case(hazard, "CONFIRMED", case, *found.groups()).checked()


def wanted_cases(names, zeroproof):
    """Every case that is asked for, by hazard: the exported ones before those of a script."""
    scripts = {path.stem: path for path in sorted(HERE.glob("[hn][0-9][0-9].py"))}
    exported = list(exports()) if zeroproof else []
    stems = set(scripts) | {_stem(hazard) for hazard, *_ in exported}
    wanted = {Path(name).stem for name in names} or stems
    for name in sorted(wanted - stems):
        sys.exit(f"{name} is no hazard of {HERE}; there are {', '.join(sorted(stems))}")
    for stem in sorted(wanted):
        for hazard, properties, arguments in exported:
            if _stem(hazard) == stem:
                yield from cases_of_export(zeroproof, hazard, properties, arguments)
        if stem in scripts:
            yield from cases_of_script(scripts[stem])


def _stem(hazard):
    return f"{hazard[0].lower()}{int(hazard[1:]):02d}"


def report(found, header, options):
    """Compares with the table of this release, or writes it; the exit code."""
    bad = [case for case in found if case.word in ("fails", "crashed")]
    path = options.table or table_of(header)
    if options.write:
        path.write_text("\n".join([header, *map(str, found)]) + "\n")
        return 1 if bad else 0
    if not path.is_file():
        print(f"no table {path.name}: no outcome to compare with", file=sys.stderr)
        return 1 if bad else 0
    is_whole = not options.names and bool(options.zeroproof)
    changes = differences(read_cases(path), found, is_whole)
    for change in changes:
        print(change, file=sys.stderr)
    return 1 if changes or bad else 0


def parse():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="h03 or n01; all without a name")
    parser.add_argument("--write", action="store_true", help="writes the table of this release")
    parser.add_argument("--table", type=Path, help="instead of the table of this release")
    parser.add_argument("--zeroproof", default=os.environ.get("ZP_ZEROPROOF", ""))
    return parser.parse_args()


def main():
    """Prints a header and a line a case; the exit code."""
    options = parse()
    os.environ["DS_ACCELERATOR"] = "cpu"
    try:
        versions = [importlib.metadata.version(name) for name in ("deepspeed", "torch")]
    except importlib.metadata.PackageNotFoundError as missing:
        print(f"SKIP: {sys.executable} has no {missing.name}")
        return SKIPPED
    header = f"DeepSpeed {versions[0]}, torch {versions[1]}, CPU, gloo"
    print(header, flush=True)
    forks.preload(USED)
    found = []
    for case in wanted_cases(options.names, options.zeroproof):
        found.append(case)
        print(case, flush=True)
    return report(found, header, options)


if __name__ == "__main__":
    sys.exit(main())
