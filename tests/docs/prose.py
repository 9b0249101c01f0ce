"""Counts what the style of pages and messages asks to leave out; prose_budget.json has the limits.

Words: names that were replaced and words with two meanings. Openings: sentences that begin with
What, Where, Of. Long: sentences of more than 25 words, in the pages that a newcomer reads.
`python3 tests/docs/prose.py` prints the counts, `--list FOLDER` each place, `--write` lowers limits.
"""

import glob
import json
import os
import re
import subprocess
import sys

from prose_text import CODE, prose_of, sentences

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
BUDGET = os.path.join(ROOT, "tests", "docs", "prose_budget.json")
WORDS = {  # a pattern: what to write
    r"behind(?! GitHub)": "after, of time; behind is for space",
    r"tells?|told|telling": "report, say",
    r"nobody|nothing|whoever|whichever": "say who and what",
    r"none of|what has none": "say who and what",
    r"museums?": "mutation testing",
    r"plant(?:s|ed|ing)?": "mutant, fault",
    r"excuses?|why_invalid|specimens?": "applicability, validate, counterexample",
    r"habits?|manners?|asides?|brims?|litters?|guests?": "the subject's own name",
    r"latitudes?": "order model",
    r"for ever|anew": "forever; again",
}
BANNED = re.compile(r"\b(?:" + "|".join(WORDS) + r")\b", re.I)
OPENING = re.compile(r"(?:^|(?<=[.!?:] )|(?<=\n\n))(?:What|Where|Of) (?=[a-z])", re.M)
LONG_MAX = 25
PARTS = ["README.md", "CONTRIBUTING.md", "docs", "docs/tutorial", "docs/how-to", "docs/explanation",
         "docs/reference", "docs/spec", "model", "engine", "include", "sim", "props", "props/cli",
         "tests", "bench", "examples", "recorder", "subject", "packaging", "cmake", "zp"]
READ = (".md", ".py", ".sh", ".faults", ".json", ".cmake", "CMakeLists.txt")
READ_FIRST = ("README.md", "docs/tutorial", "docs/how-to")


def tracked_files():
    listed = subprocess.run(["git", "-C", ROOT, "ls-files"], capture_output=True, text=True)
    names = listed.stdout.split("\n") if listed.returncode == 0 else [
        os.path.relpath(path, ROOT) for path in glob.glob(os.path.join(ROOT, "**"), recursive=True)]
    return [name for name in names if name and os.path.isfile(os.path.join(ROOT, name))]


def part_of(path):
    """The longest part whose folder holds the file, or None."""
    fits = [part for part in PARTS if path == part or path.startswith(part + "/")]
    return max(fits, key=len, default=None)


def findings_in(path, text):
    """(kind, place) of each finding."""
    prose = prose_of(path, text)
    found = [("words", " ".join(prose[max(0, match.start() - 40):match.end() + 40].split()))
             for match in BANNED.finditer(prose)]
    if path.endswith(".md"):
        found += [("openings", prose[match.start():match.start() + 60])
                  for match in OPENING.finditer(prose)]
    if part_of(path) in READ_FIRST:
        found += [("long", sentence[:70]) for sentence in sentences(prose)
                  if len(re.findall(r"[\w'/.-]*\w", sentence)) > LONG_MAX]
    return found


def exempt(path):
    return path in ("CHANGELOG.md", "tests/docs/prose.py", "tests/docs/prose_test.py") or \
        path.endswith("frozen_2026_11.faults")


def count_tree():
    """{part: {kind: count}}, and the places of each part."""
    counts = {part: {"words": 0, "openings": 0, "long": 0} for part in PARTS}
    places = {part: [] for part in PARTS}
    for path in tracked_files():
        part = part_of(path)
        if part is None or exempt(path) or not (
                path == "zp" or path.endswith(READ + CODE)):
            continue
        with open(os.path.join(ROOT, path), encoding="utf-8", errors="replace") as file:
            for kind, place in findings_in(path, file.read()):
                counts[part][kind] += 1
                places[part].append(f"{path}: {kind}: {place}")
    return counts, places


def over_budget(counts, budget):
    """Findings in words: each count above its limit, and each part without one."""
    return [f"{part}: {count} {kind}, at most {budget.get(part, {}).get(kind, 0)}: "
            f"python3 tests/docs/prose.py --list {part}"
            for part, kinds in counts.items() for kind, count in kinds.items()
            if count > budget.get(part, {}).get(kind, 0)]


def read_budget():
    with open(BUDGET, encoding="utf-8") as file:
        return json.load(file)


def lowered(counts, budget):
    """The budget with no limit above its count; a limit never grows."""
    return {part: {kind: min(count, budget.get(part, {}).get(kind, count))
                   for kind, count in kinds.items()} for part, kinds in counts.items()}


def main(arguments):
    counts, places = count_tree()
    if arguments[:1] == ["--list"]:
        print("\n".join(places[arguments[1]]))
        return
    if arguments == ["--write"]:
        known = read_budget() if os.path.exists(BUDGET) else {}
        with open(BUDGET, "w", encoding="utf-8") as file:
            rows = [f"  {json.dumps(part)}: {json.dumps(kinds)}"
                    for part, kinds in lowered(counts, known).items()]
            file.write("{\n" + ",\n".join(rows) + "\n}\n")
    for part, kinds in counts.items():
        print(f"{part:18} " + "  ".join(f"{kind} {count:4}" for kind, count in kinds.items()))


if __name__ == "__main__":
    main(sys.argv[1:])
