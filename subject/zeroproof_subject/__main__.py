"""The command: python -m zeroproof_subject."""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from zeroproof_subject.protocol import with_refusals

EXAMPLES = """examples:
  python -m zeroproof_subject capabilities --engine ddp > ddp.json
  zeroproof generate --seed 7 --count 300 --for ddp.json --json > programs.jsonl
  python -m zeroproof_subject compare --engine ddp programs.jsonl
  python -m zeroproof_subject compare --engine deepspeed --set stage=2 programs.jsonl
  python -m zeroproof_subject serve --engine examples.my_engine:make
"""


PROGRESS_SECONDS = 10


def option(text: str) -> tuple[str, Any]:
    """NAME=VALUE, the value as JSON or as it is."""
    name, found, value = text.partition("=")
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r}: give NAME=VALUE")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def parser() -> argparse.ArgumentParser:
    """The command line."""
    result = argparse.ArgumentParser(
        prog="zeroproof-subject",
        description=__doc__.splitlines()[0],
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = result.add_subparsers(dest="verb", required=True)
    texts = {
        "capabilities": "print what programs the engine can do, as `generate --for` reads it",
        "serve": "run the programs that arrive as JSON lines",
        "compare": "run the programs of a file, and beside them plain PyTorch",
        "script": "print a program that differs as a script without this package",
    }
    for verb, text in texts.items():
        command = verbs.add_parser(verb, help=text, description=text)
        command.add_argument("--engine", required=True, help="a name, or package.module:make")
        command.add_argument(
            "--set", action="append", type=option, default=[], metavar="NAME=VALUE"
        )
        if verb == "compare":
            command.add_argument("programs", help="what `zeroproof generate --json` printed, or the document of one program")
            command.add_argument("--out", help="a JSON file for the findings")
            command.add_argument("--seconds", type=float, help="begin no program after them")
            command.add_argument(
                "--skip-known",
                action="store_true",
                help="run no program that has what a known finding needs",
            )
            command.add_argument(
                "--relations",
                action="store_true",
                help="compare each program with its twins on the engine, not with plain PyTorch",
            )
        if verb == "script":
            command.add_argument("program", help="a program, or a case of `generate --json`")
    return result


def script(subject: Any, arguments: argparse.Namespace) -> int:
    """Exit code 1: the program does not differ, or has no script."""
    from zeroproof_subject.script import NoScript
    from zeroproof_subject.subject import Comparison

    with open(arguments.program, encoding="utf-8") as file:
        document = json.load(file)
    comparison = Comparison(subject)
    try:
        text = comparison.script(document.get("program", document))
    except NoScript as error:
        text, reason = None, str(error)
    else:
        reason = "the program trains as plain PyTorch does"
    comparison.end()
    print(text if text is not None else f"{arguments.program}: {reason}", file=sys.stdout if text else sys.stderr)
    return 0 if text is not None else 1


def read_cases(path: str) -> Iterator[dict[str, Any]]:
    """Of a program's document, or of lines that are cases of `zeroproof generate` or programs."""
    with open(path, encoding="utf-8") as file:
        first = file.readline()
        if first.strip() == "{":
            yield {"case": 0, "program": json.loads(first + file.read())}
            return
        for number, line in enumerate(itertools.chain([first], file)):
            document = json.loads(line)
            case = document if "program" in document else {"case": number, "program": document}
            yield {**case, "program": with_refusals(case["program"], case)}


def relate(subject: Any, arguments: argparse.Namespace) -> int:
    """Exit code 1: some program violates a relation."""
    from zeroproof_subject.relations import Relations

    relations = Relations(subject)
    begin = time.monotonic()
    programs = 0
    violating: dict[int, list[str]] = {}
    for case in read_cases(arguments.programs):
        if arguments.seconds and time.monotonic() - begin > arguments.seconds:
            break
        programs += 1
        if names := relations.run(case["program"], case["case"]):
            violating[case["case"]] = names
    relations.end()
    print(f"{programs} programs, {len(violating)} violate a relation")
    print(relations.text())
    if arguments.out:
        with open(arguments.out, "w", encoding="utf-8") as file:
            json.dump({"versions": subject.versions(), "violating": violating}, file, indent=1)
    return 1 if violating else 0


def compare(subject: Any, arguments: argparse.Namespace) -> int:
    """Exit code 1: some program differs."""
    from zeroproof_subject.subject import Comparison
    from zeroproof_subject.tally import Tally

    comparison, tally = Comparison(subject), Tally()
    skipped: Counter[str] = Counter()
    begin = said = time.monotonic()
    for case in read_cases(arguments.programs):
        now = time.monotonic()
        if arguments.seconds and now - begin > arguments.seconds:
            break
        if now - said > PROGRESS_SECONDS:
            said = now
            print(f"{now - begin:.0f} s: {tally.counts()}", file=sys.stderr, flush=True)
        verdict = comparison.run(case["program"], arguments.skip_known)
        if verdict.status == "skipped":
            skipped[verdict.known.id] += 1
        else:
            tally.add(case, verdict)
    comparison.end()
    took = time.monotonic() - begin
    print(tally.text())
    if skipped:
        counts = ", ".join(f"{count} {name}" for name, count in skipped.most_common())
        print(f"{skipped.total()} programs skipped, which may show what is known: {counts}")
    rate, share = sum(tally.statuses.values()) / took, 100 * sum(tally.seconds) / took
    print(f"{rate:.1f} programs a second, {took:.0f} s, {share:.0f} % of it in the engine")
    if arguments.out:
        with open(arguments.out, "w", encoding="utf-8") as file:
            json.dump({"versions": subject.versions(), **tally.document()}, file, indent=1)
    return 1 if tally.findings else 0


def main() -> int:
    """Returns the exit code."""
    arguments = parser().parse_args()
    # What libraries print must not come between the lines of the protocol.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    from zeroproof_subject.subject import Subject

    subject = Subject(arguments.engine, dict(arguments.set))
    if arguments.verb == "capabilities":
        out.write(json.dumps(subject.capabilities(), indent=1) + "\n")
        out.flush()
        return 0
    if arguments.verb == "compare":
        os.dup2(out.fileno(), 1)
        return (relate if arguments.relations else compare)(subject, arguments)
    if arguments.verb == "script":
        os.dup2(out.fileno(), 1)
        return script(subject, arguments)
    from zeroproof_subject.protocol import answers

    for answer in answers(subject, sys.stdin):
        out.write(json.dumps(answer, allow_nan=False) + "\n")
        out.flush()
    subject.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
