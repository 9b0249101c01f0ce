"""The suite of recorder/jobs on the installed releases, as items of a digest."""

import argparse
import re
import sys
import time

import pairs
from digest import SEPARATOR
from replays import judge
from scripts import find_jobs
from trace_items import collectives, norms, order_items, read_records, resting_state, transitions

TIMEOUT_S = 180
ENDINGS = "endings.txt"
COUNT = re.compile(r" x\d+$")  # a finding of both ranks is one
# After an assertion inside PyTorch its state is undefined: a job ends so or by SIGSEGV, at random.
CRASH = re.compile(r"exit -11\b|INTERNAL ASSERT")
CRASHED = "crash inside PyTorch"


def record(out, _zeroproof, only="*", seconds=TIMEOUT_S):
    """Records every job of the suite, with the recorder alone; how each ended is in endings.txt."""
    options = argparse.Namespace(recorder="--numbers", spawn=False, timeout=seconds)
    jobs, endings = find_jobs("suite", only), []
    out.mkdir(parents=True, exist_ok=True)
    for number, job in enumerate(jobs, 1):
        name = f"{job.name.replace('_job', '')}-w{job.world}"
        began = time.monotonic()
        run = pairs.run(job, "engine" if job.packages else "full", out / name, options)
        pairs.wait_for_guardians(out / name)
        told = [f"exit {rank.code} {rank.exception}"[:120].strip() for rank in run.ranks]
        endings.append(f"{name}{SEPARATOR}{' / '.join(dict.fromkeys(told))}")
        took = time.monotonic() - began
        print(f"suite {number}/{len(jobs)} {name} {took:.1f} s", file=sys.stderr, flush=True)
    (out / ENDINGS).write_text("\n".join(endings) + "\n")


def read(digest, out, zeroproof):
    """What endings and traces say."""
    for line in (out / ENDINGS).read_text().splitlines():
        name, _, ending = line.partition(SEPARATOR)
        is_crash = CRASH.search(ending) is not None
        digest.add("suite.ending", name, CRASHED if is_crash else ending)
        if is_crash:
            continue  # its files are not the same in every run
        if zeroproof:
            digest.add("suite.replay", name, _said(judge(zeroproof, out / name, "")))
        previous = None
        for path in sorted((out / name).glob("*.jsonl.gz")):
            place = f"{name} r{path.name.rpartition('_r')[2].split('.')[0]}"
            previous = _add_trace(digest, place, list(read_records(path)), previous)


def _said(verdict):
    kinds = (*verdict.defects, *verdict.hazards, *verdict.notes, *verdict.falsified)
    return ", ".join([verdict.word, *sorted({COUNT.sub("", kind) for kind in kinds})])


def _add_trace(digest, place, records, previous):
    """Adds one trace; what is as on the rank before is not written again."""
    events = [record for record in records if record["rec"] == "ev"]
    order = list(order_items("", events))
    for label, text in order if order != previous else [("", "as on the rank before")]:
        digest.add("suite.order", f"{place}{label}", text)
    for text in transitions(events):
        digest.add("suite.state", text)
    facts = {
        "suite.rest": resting_state(events),
        "suite.collectives": collectives(events),
        "suite.numbers": "; ".join(norms(records)),
    }
    for kind, value in facts.items():
        if value:
            digest.add(kind, place, value)
    return order
