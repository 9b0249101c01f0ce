"""FSDP2 that goes on after a backward or a forward that failed: reset_iter_state()."""

import sys

import torch
from job import batch, begin, finish, need
from models import Net
from shards import shard

ARGUMENTS = ("backward", "forward")


def fails(*_):
    """A hook that every rank runs at the same place."""
    raise RuntimeError("planned")


need(torch_version=(2, 15))
rank, _ = begin()
torch.manual_seed(7)
model = shard(Net(3))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for step in range(4):
    is_failing = step == 1
    register = model.blocks[1].register_forward_pre_hook
    failing = register(fails) if is_failing and sys.argv[1] == "forward" else None
    try:
        optimizer.zero_grad()
        output = model(batch(step, rank, width=8))
        if is_failing:
            output.register_hook(fails)
        output.pow(2).mean().backward()
    except RuntimeError as error:
        assert str(error) == "planned", error
        model.reset_iter_state()
        if failing is not None:
            failing.remove()
        continue
    optimizer.step()
finish(model)
