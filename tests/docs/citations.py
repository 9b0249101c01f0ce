"""Finds citations of documents that are not in the repository, and of sections that a page lacks.

A citation is `docs/spec/zero.md 2.17`, `docs/reference/trace_format.md section 5`, a markdown
link, or the name of any markdown file. A section is a heading that begins with the number, or an id that the
page prints in a table or in bold (E7, K6, P7).
"""

import os
import re

SUFFIXES = (".h", ".cpp", ".cu", ".cuh", ".py", ".md", ".json", ".sh", ".pml", ".cmake", ".txt",
            ".faults")
SKIPPED_FOLDERS = {".git", "build", "out", "__pycache__", "traces"}
# The past, and bad examples.
EXEMPT = {"CHANGELOG.md", "tests/docs/citations_test.py", "tests/docs/links_test.py",
          "tests/docs/prose_test.py"}
# Documents that engineers had beside the repository; assembled, so that this file passes.
OUTSIDE = re.compile(
    r"\b(?:(?:zero|autograd)_" + r"semantics|(?:codebase|simulation|performance)_" + r"anchors|"
    r"field_" + r"findings|shared/" + r"spec)\b|\bbug_" + r"catalogue(?:\.md| [0-9A-Z])")
OUTSIDE_WORDS = ("_" + "semantics", "_" + "anchors", "field_" + "findings", "bug_" + "catalogue",
                 "shared/" + "spec")
MARKDOWN_FILE = re.compile(r"(?<![\w./*{}<$-])((?:\.\./|[\w-]+/)*[A-Za-z][\w-]*\.md)\b")
LINK = re.compile(r"\]\(([^)#\s]+\.md)(?:#[^)]*)?\)")
CITED_SECTION = re.compile(
    r"\b(docs/[\w/]+\.md)[`,]*(?:\s|//|\*)*(?:sections? )?(\d+(?:\.\d+)?)[ab]?"
    r"((?:(?:,| to| and|-) ?(?:section )?\d+(?:\.\d+)?[ab]?)*)(?![\w%])")
CITED_ID = re.compile(r"\b(docs/spec/[\w/]+\.md) ([A-Z]\d+)\b")
NUMBER = re.compile(r"\d+(?:\.\d+)?")


def text_files(root):
    """Paths from `root`, sorted, of every file that may cite."""
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(set(folders) - SKIPPED_FOLDERS)
        found += [os.path.relpath(os.path.join(folder, name), root)
                  for name in names if name.endswith(SUFFIXES)]
    return sorted(found)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return file.read()


class Pages:
    """The sections and ids of the markdown pages below `root`; a page may lead to others."""

    def __init__(self, root):
        self.root = root
        self.known = {}

    def marks(self, path):
        if path not in self.known:
            text = read(self.root, path)
            marks = set(re.findall(r"^#+ (?:\w+ )?(\d+(?:\.\d+)?)\b", text, re.M))
            marks |= set(re.findall(r"^\| (?:\[?)([A-Z]\d+)\b", text, re.M))
            marks |= set(re.findall(r"\b([A-Z]\d+)\b", text)) if path.startswith("docs/spec/") else set()
            self.known[path] = marks  # before the links, which may lead back
            for target in LINK.findall(text) if path.startswith("docs/spec/") else []:
                linked = os.path.normpath(os.path.join(os.path.dirname(path), target))
                if os.path.exists(os.path.join(self.root, linked)):
                    marks |= self.marks(linked)
        return self.known[path]


def line_of(text, at):
    return text.count("\n", 0, at) + 1


def exists(root, path, mention):
    """Whether a mentioned markdown file is there, from the root, beside `path`, or by its name."""
    beside = os.path.join(os.path.dirname(path), mention)
    if any(os.path.exists(os.path.join(root, place)) for place in (mention, beside)):
        return True
    return "/" not in mention and mention in exists.names[root]


exists.names = {}


def check_file(root, path, pages):
    """Findings, each `path:line: what is wrong`."""
    text = read(root, path)
    findings = []

    def report(at, detail):
        findings.append(f"{path}:{line_of(text, at)}: {detail}")

    names_one = any(word in text for word in OUTSIDE_WORDS)  # large data is passed over quickly
    for match in OUTSIDE.finditer(text) if names_one else []:
        report(match.start(), f"cites {match.group(0)}, which is not in the repository")
    for match in LINK.finditer(text) if path.endswith(".md") else []:
        if "://" not in match.group(1) and not exists(root, path, match.group(1)):
            report(match.start(), f"links to {match.group(1)}, which does not exist")
    for match in MARKDOWN_FILE.finditer(text) if "docs/" in text else []:
        mention = match.group(1)
        if mention.startswith("docs/") and not exists(root, path, mention):
            report(match.start(), f"names {mention}, which does not exist")
    if "docs/" not in text:
        return findings
    for match in CITED_SECTION.finditer(text):
        page = match.group(1)
        if not os.path.exists(os.path.join(root, page)):
            continue  # named above
        for number in NUMBER.findall(match.group(2) + match.group(3)):
            if number not in pages.marks(page):
                report(match.start(), f"cites section {number} of {page}, which has none")
    for match in CITED_ID.finditer(text):
        page, mark = match.groups()
        if os.path.exists(os.path.join(root, page)) and mark not in pages.marks(page):
            report(match.start(), f"cites {mark} of {page}, which has none")
    return findings


def check_tree(root):
    files = text_files(root)
    exists.names[root] = {os.path.basename(path) for path in files}
    pages = Pages(root)
    return [finding for path in files if path not in EXEMPT
            for finding in check_file(root, path, pages)]
