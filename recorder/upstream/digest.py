"""Digests of releases: sorted lines `part.kind name | value`, and where they are."""

import gzip
import re
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "tests" / "data" / "upstream"
ENDING = ".txt.gz"
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

    def write(self, path):
        """Compressed; equal digests are equal files."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(self.text().encode(), mtime=0))


def read_digest(path):
    """The digest of a file."""
    header, *lines = gzip.decompress(Path(path).read_bytes()).decode().splitlines()
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
    found = [path.name.removeprefix("deepspeed-") for path in FOLDER.glob(f"deepspeed-*{ENDING}")]
    found = [name.removesuffix(ENDING) for name in found]
    return sorted(found, key=numbers_of)


def path_of(version):
    """Where the digest of a release is."""
    return FOLDER / f"deepspeed-{version}{ENDING}"


def version_to_compare(version):
    """The release itself where it is known, or else the newest one before it; None: no such one."""
    known = known_versions()
    before = [one for one in known if numbers_of(one) < numbers_of(version)]
    return version if version in known else before[-1] if before else None
