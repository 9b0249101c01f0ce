#!/usr/bin/env python3
"""The explorer's anchors (docs/spec/explorer.md 5.1 to 5.4) measured on this machine, in one table.

bench/anchors.py [--build build/release] [--runs 5] [--only E1,R2]

A line is one anchor: what is measured, its floor and target, the median of the runs with the least
and the most, and whether floor and target are reached. SPIN's side of the ratios is bench/spin/run.
Exit code 1: a floor is missed.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NEEDLE = ["P=2", "N=11", "defect=M9"]
DEFECTS = [f"M{number}" for number in range(1, 10)]


class Machine:
    """The two programs of a build."""

    def __init__(self, build):
        self.command = build / "bin/zeroproof"
        self.bench = build / "bin/zeroproof_bench"

    def explore(self, scenario, settings, *flags, codes=(0,)):
        """What `zeroproof explore` prints as JSON."""
        words = [word for one in settings for word in ("--set", one)]
        done = subprocess.run(
            [self.command, "explore", scenario, *words, *flags, "--json", "--progress", "none"],
            capture_output=True, text=True, check=False,
        )
        if done.returncode not in codes:
            sys.exit(f"explore {scenario} {' '.join(settings)}: exit code {done.returncode}\n{done.stderr}")
        return json.loads(done.stdout)

    def counters(self, name):
        """The counters of one benchmark."""
        with tempfile.NamedTemporaryFile(suffix=".json") as out:
            subprocess.run(
                [self.bench, f"--benchmark_filter=^{name}$", "--benchmark_min_time=0.5",
                 f"--benchmark_out={out.name}", "--benchmark_out_format=json"],
                capture_output=True, check=True,
            )
            return json.loads(Path(out.name).read_text(encoding="utf-8"))["benchmarks"][0]


def common(machine, settings, *flags, codes=(0,)):
    """A run of the common model."""
    return machine.explore("zero_epilogue", settings, *flags, codes=codes)


def falsified(machine, settings, *flags):
    """Seconds until a defect is found."""
    found = common(machine, settings, *flags, codes=(1, 3))
    return found["seconds"] if found["verdict"] == "falsified" else float("inf")


def slowest_defect(machine):
    """The slowest of the nine defects, each searched exhaustively as in docs/spec/explorer.md 1.3."""
    size = ["P=2", "N=7", "K=2", "N1=3"]
    return max(falsified(machine, [*size, f"defect={name}"]) for name in DEFECTS)


def full(machine, settings, key):
    """One figure of a full search."""
    found = common(machine, settings, "--no-reduction")
    return found[key] if key in found else found[key.split("/")[0]] / found["seconds"]


def second_core(machine, settings):
    """How many times as fast two workers are."""
    one = common(machine, settings, "--no-reduction", "--workers", "1")["seconds"]
    return one / common(machine, settings, "--no-reduction", "--workers", "2")["seconds"]


def pct_seconds(machine):
    """14,600 schedules of PCT with depth 2, which print their certificate."""
    found = common(machine, ["P=4", "N=64"], "--scheduler", "pct:2", "--budget", "14600x")
    return found["seconds_total"] if 0 < found["pct"]["chance_a_schedule"] < 1 else float("inf")


def needle_schedules(machine, seed):
    """Schedules until novelty on pair orders finds the needle."""
    found = common(machine, NEEDLE, "--scheduler", "novelty:pairs", "--budget", "100000x",
                   "--seed", str(seed), "--no-minimize", codes=(1, 3))
    return int(found["schedules"]) if found["verdict"] == "falsified" else float("inf")


def engine_search(machine):
    """The real engine, P2 N8, every order on each rank."""
    return machine.explore("hook_order", ["P=2", "N=8", "stage=1"], "--no-reduction")["seconds"]


def random_rate(counter, stage, fingerprints):
    """Of random schedules of real engines, P2 N10."""
    name = f"hook_order_random/stage:{stage}/N:10/fingerprints:{fingerprints}"
    return lambda machine, _: machine.counters(name)[counter]


def search_rate(stage, reduced):
    """Events a second of the search over real engines, P2 N8."""
    name = f"hook_order_search/stage:{stage}/N:8/reduced:{reduced}"
    return lambda machine, _: machine.counters(name)["events/s"]


# id, what, whether less is better, floor, target, unit, how
ANCHORS = [
    ("E1", "S1 full, seconds", True, 1.7, 1.0, "s", lambda m, _: full(m, ["P=2", "N=10"], "seconds")),
    ("E2", "S2 full, seconds", True, 1.4, 0.8, "s", lambda m, _: full(m, ["P=3", "N=6"], "seconds")),
    ("E3", "S3 reduced, seconds", True, 25e-3, 2.5e-3, "s", lambda m, _: common(m, ["P=3", "N=8"])["seconds"]),
    ("E4", "S1 reduced, seconds", True, 15e-3, 1.5e-3, "s", lambda m, _: common(m, ["P=2", "N=10"])["seconds"]),
    ("E5s", "S1 full, states a second", False, 5e6, 10e6, "/s", lambda m, _: full(m, ["P=2", "N=10"], "states/s")),
    ("E5t", "S1 full, transitions a second", False, 40e6, 80e6, "/s", lambda m, _: full(m, ["P=2", "N=10"], "transitions/s")),
    ("E6a", "S1, bytes a stored state", True, 16, 10, "B", lambda m, _: full(m, ["P=2", "N=10"], "bytes_per_state")),
    ("E6b", "S2, bytes a stored state", True, 16, 10, "B", lambda m, _: full(m, ["P=3", "N=6"], "bytes_per_state")),
    ("E8", "real engine, P2 N8 any order, full", True, 60, 5, "s", lambda m, _: engine_search(m)),
    ("E9", "P4 N12 reduced, seconds", True, 60, 60, "s", lambda m, _: common(m, ["P=4", "N=12"])["seconds"]),
    ("E10", "executions / classes, P2 N4 by DPOR", True, 1.5, 1.0, "", lambda m, _: common(m, ["P=2", "N=4"], "--scheduler", "dpor")["redundancy"]),
    ("E11", "S1 full, two workers", False, 1.7, 1.9, "x", lambda m, _: second_core(m, ["P=2", "N=10"])),
    ("R1a", "events/s, stage 1, fingerprints", False, 10e6, 25e6, "/s", random_rate("events/s", 1, 1)),
    ("R1b", "events/s, stage 2, fingerprints", False, 10e6, 25e6, "/s", random_rate("events/s", 2, 1)),
    ("R1c", "events/s, stage 3, fingerprints", False, 10e6, 25e6, "/s", random_rate("events/s", 3, 1)),
    ("R1d", "events/s, search, stage 1 full", False, 10e6, 25e6, "/s", search_rate(1, 0)),
    ("R1e", "events/s, search, stage 2 reduced", False, 10e6, 25e6, "/s", search_rate(2, 1)),
    ("R2", "schedules/s, P2 N10 any order, 113 events", False, 0.2e6, 0.5e6, "/s", random_rate("executions/s", 1, 0)),
    ("R2s", "beside it: one order, stage 2, 115 events", False, None, None, "/s", random_rate("executions/s", 2, 0)),
    ("R3", "PCT d 2, P4 N64, 14,600 runs", True, 1, 1, "s", lambda m, _: pct_seconds(m)),
    ("R6", "needle by pair novelty, schedules", True, 1e5, 1e4, "", needle_schedules),
    ("D1", "slowest defect, exhaustive", True, 10e-3, 10e-3, "s", lambda m, _: slowest_defect(m)),
    ("D2", "needle M9 P2 N11, exhaustive", True, 10e-3, 10e-3, "s", lambda m, _: falsified(m, NEEDLE)),
]


def text_of(value):
    """Four digits, with k or M where that is shorter; a dash for None."""
    if value is None:
        return "–"
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if abs(value) >= size:
            return f"{value / size:.4g} {unit}"
    return f"{value:.4g}"


def verdict(median, is_less, floor, target):
    """What is reached."""
    if floor is None:
        return "reported"
    reached = [median <= bound if is_less else median >= bound for bound in (floor, target)]
    return "target" if reached[1] else "floor" if reached[0] else "MISSED"


def main():
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", default="", help="ids or their beginnings, by commas")
    options = parser.parse_args()
    machine = Machine(options.build)
    wanted = tuple(options.only.split(",")) if options.only else ("",)
    print(f"load {' '.join(f'{part:.2f}' for part in os.getloadavg())}, {options.runs} runs each")
    print(f"{'':4} {'what':41} {'floor':>9} {'target':>9} {'median':>10}  [least – most]")
    missed = 0
    for name, what, is_less, floor, target, unit, how in ANCHORS:
        if not name.startswith(wanted):
            continue
        values = sorted(how(machine, run) for run in range(options.runs))
        median = statistics.median(values)
        word = verdict(median, is_less, floor, target)
        missed += word == "MISSED"
        print(
            f"{name:4} {what:41} {text_of(floor):>9} {text_of(target):>9} {text_of(median):>10}  "
            f"[{text_of(values[0])} – {text_of(values[-1])}] {unit:3} {word}",
            flush=True,
        )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
