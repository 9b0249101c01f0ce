"""The last result of `./zp upstream` on docs/UPSTREAM.md, between its markers."""

from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "UPSTREAM.md"
BEGIN, END = "<!-- upstream: begin -->", "<!-- upstream: end -->"


def write(header, against, lines):
    """Replaces the marked section."""
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    shown = "\n".join(lines) or "no difference"
    section = f"{BEGIN}\n\n{header}, against {against}:\n\n```\n{shown}\n```\n\n{END}"
    PAGE.write_text(before + section + after)
