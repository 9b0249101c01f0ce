"""Gradients are clipped after each micro-batch under no_sync, each rank by a norm of its own."""

import contextlib

import torch
from job import batch, begin, finish
from models import Net
from torch.nn.parallel import DistributedDataParallel

EXPECT = r"(clip|norm)"
RECORDER = "--numbers"
UNSEEN = "the reduced sums are equal on all ranks; no event records what was clipped before them"

rank, _ = begin()
torch.manual_seed(7)
model = DistributedDataParallel(Net())
optimizer = torch.optim.SGD(model.parameters(), lr=1e-1)
for step in range(4):
    optimizer.zero_grad()
    for micro in range(3):
        with model.no_sync() if micro < 2 else contextlib.nullcontext():
            model(batch(3 * step + micro, rank, width=8)).pow(2).sum().backward()
        if micro < 2:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    optimizer.step()
finish(model)
