"""How long the report of a large replay takes to open: report_page.py ZEROPROOF [RANKS [EVENTS]]

Writes recordings of RANKS ranks (1,024) with EVENTS events each (100,000), of which rank 7 leaves out
a collective in the last step, replays them with --out, and opens the report in Chromium. Each
rank has a gzip file of its own, so that 1,024 ranks of 100,000 events want much of a disk.
"""

import gzip
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "browser"))

from chrome import Browser  # noqa: E402

ODD = 7


def header(rank, ranks):
    return {"rec": "header", "format": "hooktrace", "version": [1, 1], "rank": rank, "world": ranks,
            "clock": {"unit": "ns", "source": "CLOCK_MONOTONIC", "mono0": 0, "unix0": 0},
            "producer": {"tool": "report_page.py"}, "program": "large"}


def lines_of(rank, ranks, events, is_odd):
    """Steps of ten hooks and ten collectives."""
    yield {"rec": "group", "name": "world", "ranks": list(range(ranks))}
    names = [f"h.{layer}.weight" for layer in range(10)]
    for name in names:
        yield {"rec": "param", "id": 0, "name": name, "shape": [4, 4], "dtype": "float32", "requires_grad": True}
    lc = number = 0

    def event(kind, **fields):
        nonlocal lc
        lc += 1
        return {"rec": "ev", "lc": lc, "t": lc * 1000, "r": rank, "th": 0, "k": kind, "gt": -1, "d": 0, **fields}

    steps = events // 31
    for step in range(steps):
        for name in names:
            yield event("param.post_acc", param=name)
        for name in names:
            if is_odd and step == steps - 1 and name == "h.4.weight":
                continue
            key = {"op": "all_reduce", "cseq": number, "group": "world", "key": f"world:{number}"}
            number += 1
            yield event("coll.issue", **key, bytes=64, params=[name])
            yield event("coll.complete", **key)
        yield event("opt.step", step=step)
    yield {"rec": "end", "events": lc, "records": lc + 11}


def body_of(rank, ranks, events, is_odd):
    text = "\n".join(json.dumps(line, separators=(",", ":")) for line in lines_of(rank, ranks, events, is_odd))
    return gzip.compress((text + "\n").encode(), 1)


def write(folder, ranks, events):
    """A gzip file is its members, so that every rank has a small header and the same body."""
    even, odd = body_of(0, ranks, events, False), body_of(ODD, ranks, events, True)
    for rank in range(ranks):
        first = gzip.compress((json.dumps(header(rank, ranks), separators=(",", ":")) + "\n").encode())
        with open(os.path.join(folder, f"large__w{ranks}_r{rank}.jsonl.gz"), "wb") as file:
            file.write(first + (odd if rank == ODD else even))


def main():
    zeroproof = os.path.abspath(sys.argv[1])
    ranks, events = (int(word) for word in (sys.argv[2:4] + ["1024", "100000"][len(sys.argv) - 2:]))
    with tempfile.TemporaryDirectory() as scratch:
        folder, out = os.path.join(scratch, "trace"), os.path.join(scratch, "out")
        os.mkdir(folder)
        write(folder, ranks, events)
        start = time.monotonic()
        run = subprocess.run([zeroproof, "replay", folder, "--out", out, "--progress", "none"],
                             stdout=subprocess.DEVNULL, check=False)
        seconds = time.monotonic() - start
        page = os.path.join(out, "report.html")
        print(f"{ranks} ranks of {events} events: replay took {seconds:.1f} s (exit code {run.returncode}), "
              f"the page has {os.path.getsize(page):,} bytes")
        browser = Browser()
        opened = [browser.open(page) for _ in range(3)]
        inner = "document.querySelector('iframe').contentDocument"
        start = time.monotonic()
        browser.run("document.getElementById('lanes').open = true")
        browser.wait_for(f"!!document.querySelector('iframe') && !!{inner} && !!{inner}.documentElement.dataset.readyMs")
        print(f"it opens in {min(opened):.2f} to {max(opened):.2f} s, its lanes in {time.monotonic() - start:.2f} s more")
        browser.__exit__()


main()
