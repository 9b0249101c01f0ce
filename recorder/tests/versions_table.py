"""The table of versions from the rows of versions.sh: versions_table.py DIR [--write PAGE]."""

import argparse
import json
from pathlib import Path

BEGIN, END = "<!-- versions: begin -->", "<!-- versions: end -->"
COLUMNS = (
    "PyTorch",
    "DeepSpeed",
    "healthy jobs",
    "as without the recorder",
    "fail by themselves",
    "accused",
    "suite",
    "as without",
    "not observed",
)
HEAD = f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}\n"


def rows_of(path):
    """The rows of one file; none where it is missing."""
    return json.loads(path.read_text()) if path.is_file() else []


def line(folder, cell):
    """One line of the table."""
    torch, deepspeed = cell.split("_", 1)
    why = folder / f"{cell}.why"
    if why.is_file():
        reason = f"does not import: {why.read_text().strip()[:90]}"
        return f"| {torch} | {deepspeed} | {reason} |{' |' * 6}"
    healthy = [row for row in rows_of(folder / f"{cell}-healthy.json") if not row["skipped"]]
    suite = [row for row in rows_of(folder / f"{cell}-suite.json") if not row["skipped"]]
    failing = [row for row in healthy if any(row["codes"])]
    accused = sorted(row["job"] for row in healthy if row["verdict"] == "accused")
    accused = [job for job in accused if job not in {row["job"] for row in failing}]
    unseen = sorted({word for row in (*healthy, *suite) for word in row["unseen"]})
    cells = [torch, deepspeed, len(healthy), _identical(healthy)]
    cells += [
        len(failing),
        ", ".join(accused) or "0",
        len(suite),
        _identical(suite),
        ", ".join(unseen) or "-",
    ]
    return f"| {' | '.join(map(str, cells))} |"


def _identical(rows):
    changed = [row["job"] for row in rows if row["difference"]]
    return f"{len(rows) - len(changed)}" + (f" (not {', '.join(changed)})" if changed else "")


def _order(cell):
    torch, deepspeed = cell.split("_", 1)
    numbers = [int(word) for word in torch.split(".")]
    return numbers, {"none": 0, "others": 2}.get(deepspeed, 1), deepspeed


def table(folder):
    """All cells of a folder."""
    names = {path.name.rsplit("-", 1)[0] for path in folder.glob("*-healthy.json")}
    names |= {path.name.removesuffix(".why") for path in folder.glob("*.why")}
    return HEAD + "\n".join(line(folder, cell) for cell in sorted(names, key=_order)) + "\n"


def main():
    """Prints the table, and puts it into a page where one is named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    text = table(options.folder)
    print(text, end="")
    if options.write:
        before, rest = options.write.read_text().split(BEGIN)
        options.write.write_text(f"{before}{BEGIN}\n{text}{END}{rest.split(END)[1]}")


if __name__ == "__main__":
    main()
