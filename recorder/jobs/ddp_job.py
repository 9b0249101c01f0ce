"""DDP on gloo. Run: torchrun --nproc_per_node 2 -m zeroproof_recorder run ddp_job.py SCENARIO"""

import contextlib
import sys

import models
import torch
import torch.distributed as dist
from job import batch, begin
from torch.nn.parallel import DistributedDataParallel

# Model, keyword arguments of DDP. A small cap makes more than one bucket of a small model.
SCENARIOS = {
    "ddp_mlp": (lambda: models.Mlp(), {"bucket_cap_mb": 48 / 2**20}),
    "ddp_find_unused": (lambda: models.Unused(), {"find_unused_parameters": True}),
    "ddp_ckpt_reentrant": (lambda: models.Checkpointed(True), {}),
    "ddp_no_sync": (lambda: models.Mlp(), {}),
}


def main(scenario, steps=3):
    """Trains a few steps; ddp_no_sync adds up two micro-batches a step."""
    rank, _ = begin()
    torch.manual_seed(7)
    make, arguments = SCENARIOS[scenario]
    model = DistributedDataParallel(make(), **arguments)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    micro_batches = 2 if scenario == "ddp_no_sync" else 1
    for step in range(steps):
        optimizer.zero_grad()
        for micro in range(micro_batches):
            is_last = micro + 1 == micro_batches
            with contextlib.nullcontext() if is_last else model.no_sync():
                model(batch(step * micro_batches + micro, rank)).backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:2])
