"""Reads docs/explanation/life_of_a_gradient.md and compares its lists with the sources.

An item is "- `Class::function` (file): text". The function is defined in that file, named once on
the page, and called by a function that stands before it: the nearest one counts. An item whose
text says "called by the training loop" or "called by the autograd" has its caller outside. Items
of one part with the same caller stand in the order in which it calls them, arguments first. The
page states how many functions and files each part has from its hook on.
"""

import os
import re

PAGE = "docs/explanation/life_of_a_gradient.md"
ITEM = re.compile(r"^- `([\w:]+)` \(([\w./]+)\): ((?:.|\n  )*)", re.M)
HOOK = "### The hook"  # where the way that is counted begins
ENTRIES = ("called by the training loop", "called by the autograd")


class Item:
    def __init__(self, match, part):
        self.name, self.file, text = match.groups()
        self.part = part
        self.is_entry = any(entry in re.sub(r"\s+", " ", text) for entry in ENTRIES)

    @property
    def function(self):
        return self.name.split("::")[-1]


def parts_of(page):
    """Titles of the second level and their text, for those that have items."""
    pieces = re.split(r"^## (.+)$", page, flags=re.M)[1:]
    return [(title, text) for title, text in zip(pieces[::2], pieces[1::2]) if ITEM.search(text)]


def items_of(page):
    return [Item(match, title) for title, text in parts_of(page) for match in ITEM.finditer(text)]


def without_comments(source):
    """The same length; comments and literals are blanks."""
    blank = lambda match: re.sub(r"[^\n]", " ", match.group(0))
    return re.sub(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])'", blank, source,
                  flags=re.S)


def block(source, brace, pair="{}"):
    depth = 0
    for at in range(brace, len(source)):
        depth += {pair[0]: 1, pair[1]: -1}.get(source[at], 0)
        if depth == 0:
            return source[brace:at + 1]
    return source[brace:]


def bodies_in(source, name):
    """The bodies of every definition of the function `name` in `source`."""
    tail = r"\s*\((?:[^(){};]|\([^(){};]*\))*\)(?:\s*const)?(?:\s*override)?\s*(?::[^{;]*)?\{"
    found = [block(source, match.end() - 1)
             for match in re.finditer(r"\b" + re.escape(name) + tail, source)]
    if "::" not in name:
        return found
    owner, function = name.rsplit("::", 1)
    for match in re.finditer(r"\b(?:class|struct) " + owner.split("::")[-1] + r"\b[^;{]*\{", source):
        inside = block(source, match.end() - 1)
        found += [block(inside, inner.end() - 1)
                  for inner in re.finditer(r"(?<![\w:.>])" + function + tail, inside)]
    return found


def calls_in(bodies, function):
    """Where the calls of the function in the bodies end, in order."""
    return [(number, call.end() + len(block(body, call.end() - 1, "()")))
            for number, body in enumerate(bodies)
            for call in re.finditer(r"\b" + function + r"\s*\(", body)]


def check(root):
    """Findings in words, none where the page is true."""
    def read(path):
        with open(os.path.join(root, path), encoding="utf-8") as file:
            return file.read()

    page = read(PAGE)
    items = items_of(page)
    findings = []
    sources = {}
    seen = []  # (item, bodies)
    last = {}  # (part, caller): (place, name)
    for item in items:
        if any(item.name == other.name for other, _ in seen):
            findings.append(f"{item.name} is named twice")
        if not os.path.exists(os.path.join(root, item.file)):
            findings.append(f"{item.name}: {item.file} does not exist")
            continue
        if item.file not in sources:
            sources[item.file] = without_comments(read(item.file))
        bodies = bodies_in(sources[item.file], item.name)
        if not bodies:
            findings.append(f"{item.name} is not defined in {item.file}")
        if not item.is_entry and seen:
            callers = [(other, calls_in(others, item.function)) for other, others in seen]
            callers = [(other, calls) for other, calls in callers if calls]
            if not callers:
                findings.append(f"{item.name} is called by no function that stands before it")
            else:
                caller, calls = callers[-1]
                place, before = last.get((item.part, caller.name), ((-1, -1), None))
                later = [call for call in calls if call > place]
                if not later:
                    findings.append(f"{item.name} stands after {before}, and {caller.name} calls it "
                                    "earlier")
                last[item.part, caller.name] = (later or [place])[0], item.name
        seen.append((item, bodies))
    stated = re.findall(r"\*\*(\d+) functions? in (\d+) files?\*\*", page)
    counted = []
    for _, text in parts_of(page):
        way = [Item(match, "") for match in ITEM.finditer(text[text.find(HOOK):])]
        counted.append((str(len(way)), str(len({item.file for item in way}))))
    if stated != counted:
        findings.append(f"the page counts {stated}, its lists have {counted}")
    return findings
