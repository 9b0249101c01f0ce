"""What differs between two digests, grouped: one paragraph for all places with the same change."""

import difflib
import re
from collections import defaultdict

# Headings in the order of the output, by kind.
HEADINGS = {
    "hazards.case": "hazards",
    "suite.ending": "how jobs end",
    "suite.replay": "what replay says",
    "suite.order": "order of hooks",
    "suite.state": "state transitions of the hook manager",
    "suite.rest": "state of the hook manager at the end",
    "suite.collectives": "collectives",
    "suite.numbers": "numbers",
    "manager.state": "state transitions of manager scripts",
    "manager.script": "manager scripts",
    "manager.replay": "replay of manager scripts",
    "programs.order": "order of hooks of programs",
    "programs.ending": "how programs end",
    "programs.conform": "conformance of programs",
}
PLACES_SHOWN = 4
# Kinds that follow from how a job ends, and those that are shown whole.
FOLLOWS = ("suite.order", "suite.rest", "suite.collectives", "suite.numbers", "suite.replay")
WHOLE = ("hazards.case", "suite.ending", "suite.replay", "suite.rest", "programs.ending")
WHOLE += ("manager.script", "manager.replay", "programs.conform")
MODULES = re.compile(r"(?<=[:,])[A-Za-z_][\w.]*\.(?=[A-Za-z_])")


def changes(old, new):
    """(kind, change, places) of everything that differs in parts that both digests have."""
    parts, ended = old.parts & new.parts, _jobs_that_end_otherwise(old, new)
    groups = defaultdict(list)
    for kind, name in {**old.items, **new.items}:
        before, after = old.items.get((kind, name)), new.items.get((kind, name))
        is_told = kind in FOLLOWS and name.split()[0] in ended
        if before != after and kind.split(".")[0] in parts and not is_told:
            for text in _differences(kind, name, before, after):
                groups[kind, text].append(name)
    order = list(HEADINGS)
    place = {kind: order.index(kind) if kind in order else len(order) for kind, _ in groups}
    by_place = sorted(groups.items(), key=lambda one: (place[one[0][0]], -len(one[1]), one[0]))
    for (kind, text), names in by_place:
        yield kind, text, sorted(set(names))


def _jobs_that_end_otherwise(old, new):
    """Of such a job everything else differs too, and is not reported."""
    names = {name for kind, name in {**old.items, **new.items} if kind == "suite.ending"}
    return {
        n for n in names if old.items.get(("suite.ending", n)) != new.items.get(("suite.ending", n))
    }


def _differences(kind, name, before, after):
    if kind.endswith(".state"):
        return [f"{'lost' if after is None else 'gained'}: {name}"]
    if before is None or after is None:
        return [f"{'lost' if after is None else 'gained'}: {_short(before or after)}"]
    if kind in WHOLE:
        return [f"{_short(before)} -> {_short(after)}"]
    return list(_pieces(_words(kind, before), _words(kind, after)))


def _words(kind, value):
    """Tokens or parts of a list; parameters without their modules, so that places agree."""
    if kind.endswith(".order"):
        return [MODULES.sub("", word) for word in value.split()]
    return value.split("; " if kind == "suite.numbers" else ", ")


def _short(text, limit=140):
    return text if len(text) <= limit else text[: limit - 2] + " …"


def _pieces(before, after):
    """Each stretch that differs: the word before it, removed words after -, added ones after +."""
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag != "equal":
            removed = [f"-{word}" for word in before[i1:i2]]
            added = [f"+{word}" for word in after[j1:j2]]
            yield _short(" ".join([*before[max(0, i1 - 1) : i1], *removed, *added]), 240)


def report(old, new):
    """Lines for a reader; empty without a difference."""
    heading = None
    for kind, text, names in changes(old, new):
        if kind != heading:
            heading = kind
            yield f"{HEADINGS.get(kind, kind)}:"
        if kind.endswith(".state"):
            yield f"  {text}"
            continue
        shown = ", ".join(names[:PLACES_SHOWN])
        more = f" and {len(names) - PLACES_SHOWN} more" if len(names) > PLACES_SHOWN else ""
        yield f"  {shown}{more}"
        yield f"      {text}"
