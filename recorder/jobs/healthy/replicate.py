"""Data parallelism by the function replicate(), with and without accumulation."""

import sys

import torch
from job import batch, begin, finish, need
from models import Net

ARGUMENTS = ("", "accumulate")

need(torch_version=(2, 7))
from torch.distributed._composable.replicate import replicate

rank, _ = begin()
torch.manual_seed(7)
model = replicate(Net())
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
micro_batches = 2 if "accumulate" in sys.argv else 1
for step in range(3):
    optimizer.zero_grad()
    for micro in range(micro_batches):
        model.set_requires_gradient_sync(micro == micro_batches - 1)
        model(batch(2 * step + micro, rank, width=8)).pow(2).mean().backward()
    optimizer.step()
finish(model)
