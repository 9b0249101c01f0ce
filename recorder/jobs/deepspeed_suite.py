"""Many DeepSpeed scenarios in one process: importing DeepSpeed takes longer than all of them.

Run: torchrun --nproc_per_node 2 deepspeed_suite.py OUT DETAIL SCENARIO:STAGES...
"""

import sys

import deepspeed
import torch
from deepspeed_job import SCENARIOS, make_engine, train_two_engines
from job import begin

import zeroproof_recorder


def run(scenario, stage, rank, out, detail):
    """One recorded scenario; what it raises is part of the recording."""
    torch.manual_seed(7)
    program = f"deepspeed{deepspeed.__version__}_{scenario}"
    options = {"out": out, "detail": detail, "program": program, "quiet": True}
    try:
        if scenario == "two_engines":
            with zeroproof_recorder.record(**options):
                train_two_engines(stage, rank)
        else:
            make, job = SCENARIOS[scenario]
            engine = make_engine(make(), stage, 2 if scenario == "gas2" else 1)
            with zeroproof_recorder.record(engine=engine, **options):
                job(engine, rank)
        ending = "ended"
    except Exception as error:
        ending = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:90]}"
    if rank == 0:
        print(f"{scenario:<24} stage {stage}  {ending}", flush=True)


def main(out, detail, *scenarios):
    """Runs all that is named, in turn."""
    rank, _ = begin()
    for word in scenarios:
        scenario, stages = word.split(":")
        for stage in stages:
            run(scenario, int(stage), rank, out, detail)


if __name__ == "__main__":
    main(*sys.argv[1:])
