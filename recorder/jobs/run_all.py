"""Runs jobs without and with the recorder, compares both, and asks `zeroproof replay`.

    python run_all.py healthy                         # every job of jobs/healthy, 2 or 4 ranks
    python run_all.py mistakes --jobs 'ddp_*' --keep traces
    python run_all.py healthy --detail all --json rows.json

The python that runs this file runs the jobs. A row says: whether exit codes, BITS lines, stdout and
the last exception are those of the run without the recorder; what `replay` found; the seconds of
both runs. Exit code 1: a job changed, a healthy job was accused, or a mistake was named wrongly.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

import forks
from pairs import Row, compare
from replays import judge
from scripts import HERE, find_jobs

DETAILS = ("hooks", "engine", "full")
# Imported once, before ranks are forked: an optimizer's first step imports the compiler, and an
# engine asks for its backends.
ALWAYS_USED = (
    "torch",
    "torch._dynamo.testing",
    "functorch.compile",
    "torch.distributed.tensor.parallel",
)
USED_OF = {
    "deepspeed": ("torch._inductor.compile_fx",),
    "transformers": ("transformers.trainer",),
    "trl": ("trl.trainer.dpo_trainer",),
}


def run_job(job, options):
    """The rows of one job, one a detail."""
    details = DETAILS if options.detail == "all" else (options.detail,)
    plain = None
    for detail in details:
        # No TemporaryDirectory: a forked rank would remove it when it ends.
        folder = Path(tempfile.mkdtemp())
        if options.keep:
            folder = options.keep / (job.name if len(details) == 1 else f"{job.name}-{detail}")
        plain, recorded, difference = compare(job, detail, folder, options, plain)
        row = Row(job, detail, plain, recorded, difference)
        if not row.is_skipped and options.zeroproof:
            row.verdict = judge(options.zeroproof, folder, job.expectation)
        if not options.keep:
            shutil.rmtree(folder, ignore_errors=True)
        yield row


def summary(rows):
    """One line of counts."""
    ran = [row for row in rows if not row.is_skipped]
    words = [f"{len(ran)} runs", f"{len(rows) - len(ran)} skipped"]
    words.append(f"{sum(not row.difference for row in ran)} identical")
    for word in ("clean", "accused", "fails by itself", "named", "silent", "wrong", "unread"):
        count = sum(row.verdict.word == word for row in ran)
        if count:
            words.append(f"{count} {word}")
    return ", ".join(words)


def read_again(options, jobs):
    """Judges kept traces again; the rows, whose runs are those of the file."""
    rows = json.loads(options.again.read_text())
    known = {job.name: job for job in jobs}
    for row in rows:
        if row["skipped"] or row["job"] not in known:
            continue
        verdict = judge(options.zeroproof, options.keep / row["job"], known[row["job"]].expectation)
        row.update(verdict.as_dict())
        print(f"{row['job']:<34} {verdict.text()}", flush=True)
    (options.json or options.again).write_text(json.dumps(rows, indent=1))
    words = [row["verdict"] for row in rows if not row["skipped"]]
    print(", ".join(f"{words.count(word)} {word}" for word in sorted(set(words))))
    return 1 if {"accused", "wrong", "unread"} & set(words) else 0


def parse():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=("healthy", "mistakes", "suite"))
    parser.add_argument("--jobs", default="*", help="globs of names, with commas between")
    parser.add_argument(
        "--packages",
        default="any",
        choices=("any", "none", "deepspeed", "others"),
        help="only jobs that need PyTorch alone, DeepSpeed alone, or more",
    )
    parser.add_argument("--detail", default="engine", choices=(*DETAILS, "all"))
    parser.add_argument("--keep", type=Path, help="folder that keeps the traces, one a job")
    parser.add_argument("--json", type=Path, help="file for the rows")
    parser.add_argument("--zeroproof", default="zeroproof", help="the command; empty: no replay")
    parser.add_argument("--timeout", type=float, default=120, help="seconds a run may take")
    parser.add_argument("--recorder", default="", help="more options of `zeroproof_recorder run`")
    parser.add_argument("--spawn", action="store_true", help="a new interpreter for each rank")
    parser.add_argument("--errors", action="store_true", help="what a changed job wrote to stderr")
    parser.add_argument(
        "--may-fail", action="store_true", help="a job may fail without the recorder too"
    )
    parser.add_argument("--again", type=Path, help="rows as JSON: only read their traces again")
    parser.add_argument("--list", action="store_true", help="only the names")
    return parser.parse_args()


def main():
    """Runs what is asked for; the exit code."""
    options = parse()
    jobs = find_jobs(options.kind, options.jobs)
    jobs = [job for job in jobs if options.packages in ("any", job.needs)]
    if options.list:
        print("\n".join(f"{job.name:<34} {job.purpose}" for job in jobs))
        return 0
    sys.path.insert(0, str(HERE.parent))
    if options.again:
        return read_again(options, jobs)
    os.environ["DS_ACCELERATOR"] = "cpu"
    rows = []
    for job in jobs:
        if not options.spawn:
            inner = [name for package in job.packages for name in USED_OF.get(package, ())]
            forks.preload((*ALWAYS_USED, *job.packages, *inner))
        for row in run_job(job, options):
            rows.append(row)
            if row.fails_by_itself and options.may_fail:
                row.verdict.word = "fails by itself"
            print(row.text(), flush=True)
            if row.difference and options.errors:
                print("\n".join(rank.errors[-3000:] for rank in row.recorded.ranks), flush=True)
            if options.json:
                options.json.write_text(json.dumps([one.as_dict() for one in rows], indent=1))
    print(summary(rows))
    bad = [row for row in rows if row.is_bad]
    return 1 if bad or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
