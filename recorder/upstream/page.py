"""The marked sections of results.md: the last result, and changes between known releases."""

import itertools
from pathlib import Path

from changes import report
from digest import known_versions, path_of, read_digest

PAGE = Path(__file__).with_name("results.md")


def write(header, against, lines):
    """Replaces both sections."""
    result = _differences(f"{header}, against {against or 'no other release: none is known'}", lines)
    known = [read_digest(path_of(version)) for version in known_versions()]
    pairs = [
        _differences(f"{new.header}, against {old.header}", list(report(old, new)))
        for old, new in itertools.pairwise(known)
    ]
    text = _replaced(PAGE.read_text(), "last", result)
    PAGE.write_text(_replaced(text, "known", "\n\n".join(pairs)))


def _differences(title, lines):
    shown = "\n".join(lines) or "no difference"
    return f"{title}:\n\n```\n{shown}\n```"


def _replaced(text, name, section):
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, rest = text.split(begin)
    return f"{before}{begin}\n\n{section}\n\n{end}{rest.split(end)[1]}"
