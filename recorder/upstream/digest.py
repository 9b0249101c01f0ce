"""Digests of releases: sorted lines `part.kind name | value`, and where they are."""

import re
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "tests" / "data" / "upstream"
SEPARATOR = " | "


class Digest:
    """Items of one release: (kind, name) to a value; kinds are `suite.order`, `hazards.case`, …"""

    def __init__(self, header, items=()):
        self.header = header
        self.items = dict(items)

    def add(self, kind, name, value="yes"):
        """One item; line breaks of errors become spaces."""
        self.items[kind, name] = " ".join(str(value).split())

    @property
    def parts(self):
        """What was recorded."""
        return {kind.split(".")[0] for kind, _ in self.items}

    def text(self):
        """As written."""
        lines = [f"{kind} {name}{SEPARATOR}{value}" for (kind, name), value in self.items.items()]
        return "\n".join([self.header, *sorted(lines)]) + "\n"


def read_digest(path):
    """The digest of a file."""
    header, *lines = Path(path).read_text().splitlines()
    digest = Digest(header)
    for line in lines:
        place, _, value = line.partition(SEPARATOR)
        kind, _, name = place.partition(" ")
        digest.items[kind, name] = value
    return digest


def numbers_of(version):
    """0.19.8 as numbers, for comparisons."""
    return tuple(int(word) for word in re.findall(r"\d+", version)[:3])


def known_versions():
    """Releases that have a digest, the oldest first."""
    found = [path.stem.removeprefix("deepspeed-") for path in FOLDER.glob("deepspeed-*.txt")]
    return sorted(found, key=numbers_of)


def path_of(version):
    """Where the digest of a release is."""
    return FOLDER / f"deepspeed-{version}.txt"


def version_to_compare(version):
    """The release itself where it is known, or else the newest one before it; None: no such one."""
    known = known_versions()
    before = [one for one in known if numbers_of(one) < numbers_of(version)]
    return version if version in known else before[-1] if before else None
