"""Finds links and paths of the tree in pages that lead nowhere.

A link is `[text](target)`: its file, folder or picture exists, and its anchor is a heading there.
A path begins with a folder of the root, as `props/cli/verb.h`; of a header that is installed
`include/zeroproof/` may be left out. Capital words in a path (`NAME.json`) stand for any.
"""

import glob
import os
import re

LINK = re.compile(r"(?<!`)\[[^\]\n]*\]\(([^)\s]+)\)")
PAGES = ("*.md", "docs/**/*.md", "*/README.md", "tests/**/*.md", "recorder/**/*.md")
HISTORY = {"CHANGELOG.md"}
# Files that a reader makes.
MADE = {"docs/tutorial/add_a_property.md": {"props/added/step_has_gradient.cpp"},
        "docs/how-to/check_a_deepspeed_release.md": {"tests/data/upstream/deepspeed-0.19.9.txt.gz"}}
PLACEHOLDER = re.compile(r"(?:^|[/.-])[A-Z]{2,}(?:[.-]|$)")


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def pages(root):
    found = {os.path.relpath(path, root) for pattern in PAGES
             for path in glob.glob(os.path.join(root, pattern), recursive=True)}
    return sorted(path for path in found
                  if path not in HISTORY and not path.startswith(("build/", "out/")))


def anchors(text):
    """Of the headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def without_blocks(text):
    """The same length; fenced blocks are blanks."""
    return re.sub(r"^```.*?^```", lambda match: re.sub(r"[^\n]", " ", match[0]), text,
                  flags=re.M | re.S)


def broken_link(root, path, target):
    """Why the link leads nowhere, or None."""
    if re.match(r"[a-z]+:", target):
        return None
    file, _, anchor = target.partition("#")
    linked = os.path.normpath(os.path.join(os.path.dirname(path), file)) if file else path
    if not os.path.exists(os.path.join(root, linked)):
        return f"links to {target}, which does not exist"
    if anchor and linked.endswith(".md") and anchor not in anchors(read(root, linked)):
        return f"links to {target}, and {linked} has no such heading"
    return None


def leads_somewhere(root, path, mention):
    places = ("", os.path.dirname(path), "include/zeroproof")
    return (mention in MADE.get(path, ()) or PLACEHOLDER.search(mention) is not None or
            any(glob.glob(os.path.join(root, place, mention) + "*") for place in places))


def check(root):
    """Findings, each `page:line: what is wrong`."""
    folders = sorted(name for name in os.listdir(root)
                     if os.path.isdir(os.path.join(root, name)) and name not in ("build", "out")
                     and not name.startswith("."))
    mentioned = re.compile(r"(?<![\w/.~{-])((?:" + "|".join(folders) + r")/[\w./-]*\w)(?![\w*{])")
    findings = []
    for path in pages(root):
        text = without_blocks(read(root, path))
        for match in LINK.finditer(text):
            if reason := broken_link(root, path, match[1]):
                findings.append(f"{path}:{text.count(chr(10), 0, match.start()) + 1}: {reason}")
        for match in mentioned.finditer(LINK.sub(lambda link: " " * len(link[0]), text)):
            if not leads_somewhere(root, path, match[1]):
                line = text.count("\n", 0, match.start()) + 1
                findings.append(f"{path}:{line}: names {match[1]}, which does not exist")
    return findings
