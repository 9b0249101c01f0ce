"""A job in which one rank skips one collective, as a data-dependent branch makes it do.

Run: torchrun --nproc_per_node 2 -m zeroproof_recorder run skipped_collective_job.py [MODEL]

Every rank averages its gradients by hand, one all-reduce a parameter, last layer first. In step 2
rank 1 leaves one out and goes on.

Square: all gradients have one size, so rank 1's later all-reduces meet those of other parameters
of rank 0, with wrong numbers and no error. The last one of rank 0 meets no partner; gloo gives up
after 10 s. Mlp: sizes differ, and gloo aborts the process that gets too many bytes.
"""

import sys
import time

import models
import torch
import torch.distributed as dist
from job import batch, begin

TIMEOUT_S = 10
SKIPS = {"Square": (1, 2, "l2.weight"), "Mlp": (1, 2, "l1.bias")}  # rank, step, parameter


def average_gradients(model, rank, world, step):
    """One all-reduce a parameter, last layer first."""
    for name, param in reversed(list(model.named_parameters())):
        if (rank, step, name) == SKIPS[type(model).__name__]:
            continue
        dist.all_reduce(param.grad)
        param.grad /= world


def main(model_name="Square", steps=4):
    """Trains until the ranks no longer agree."""
    rank, world = begin(TIMEOUT_S)
    torch.manual_seed(7)
    model = getattr(models, model_name)()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-1)
    for step in range(steps):
        optimizer.zero_grad()
        model(batch(step, rank)).backward()
        average_gradients(model, rank, world, step)
        optimizer.step()
    time.sleep(TIMEOUT_S + 5)  # rank 1 believes to be done, and writes its checkpoint
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:2])
