"""FSDP2 on gloo.

Run: torchrun --nproc_per_node 2 -m zeroproof_recorder run fsdp2_job.py SCENARIO
"""

import sys

import models
import torch
import torch.distributed as dist
from job import batch, begin
from torch.distributed.device_mesh import init_device_mesh

try:
    from torch.distributed.fsdp import fully_shard
except ImportError:  # PyTorch before 2.6
    from torch.distributed._composable.fsdp import fully_shard

# Model, and the children that are units of their own.
SCENARIOS = {
    "fsdp2_mlp": (lambda: models.Mlp(), ("l1", "l2")),
    "fsdp2_ckpt_reentrant": (lambda: models.Checkpointed(True), ("b1", "b2")),
    "fsdp2_ckpt_nonreentrant": (lambda: models.Checkpointed(False), ("b1", "b2")),
}


def main(scenario, steps=2):
    """Trains a few steps."""
    rank, world = begin()
    torch.manual_seed(7)
    make, units = SCENARIOS[scenario]
    model = make()
    mesh = init_device_mesh("cpu", (world,))
    for unit in units:
        fully_shard(getattr(model, unit), mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(steps):
        optimizer.zero_grad()
        model(batch(step, rank)).backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:2])
