"""What differs between two digests, grouped: one paragraph for all places with the same change."""

import difflib
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
PLACES_SHOWN = 6
TOKENS_AROUND = 2


def changes(old, new):
    """(kind, change, places) of everything that differs in parts that both digests have."""
    parts = old.parts & new.parts
    groups = defaultdict(list)
    for key in {**old.items, **new.items}:
        before, after = old.items.get(key), new.items.get(key)
        kind, name = key
        if before != after and kind.split(".")[0] in parts:
            text = _difference(kind, name, before, after)
            groups[kind, text].append(name)
    order = list(HEADINGS)
    place = {kind: order.index(kind) if kind in order else len(order) for kind, _ in groups}
    for (kind, text), names in sorted(groups.items(), key=lambda one: (place[one[0][0]], one[0])):
        yield kind, text, sorted(names)


def _difference(kind, name, before, after):
    if kind.endswith(".state"):
        return f"{'lost' if after is None else 'gained'}: {name}"
    if before is None or after is None:
        return f"{'lost' if after is None else 'gained'}: {_short(before or after)}"
    if kind == "hazards.case":
        return f"{_short(before)} -> {_short(after)}"
    return _words_changed(before.split(), after.split())


def _short(text, limit=160):
    return text if len(text) <= limit else text[: limit - 2] + " …"


def _words_changed(before, after):
    """Removed words after -, added ones after +, with a few words around."""
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    pieces = []
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            continue
        context = " ".join(before[max(0, i1 - TOKENS_AROUND) : i1])
        removed = "".join(f" -{word}" for word in before[i1:i2])
        added = "".join(f" +{word}" for word in after[j1:j2])
        pieces.append(f"… {context}{removed}{added}".replace("…  ", "… "))
    return " ".join(_short(piece, 240) for piece in pieces[:4]) + (" …" if len(pieces) > 4 else "")


def report(old, new):
    """Lines for a reader; no line where nothing differs."""
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
