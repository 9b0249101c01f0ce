"""PiPPy #1133, accelerate #1726: no_sync ends one micro-batch late, and covers the boundary."""

import contextlib

import torch
from job import batch, begin, finish
from models import Net
from torch.nn.parallel import DistributedDataParallel

EXPECT = r"(no_sync|not reduced|without|no collective|step_without_sync)"

rank, _ = begin()
torch.manual_seed(7)
model = DistributedDataParallel(Net())
optimizer = torch.optim.SGD(model.parameters(), lr=1e-1)
for micro in range(8):
    with model.no_sync() if micro % 4 != 3 else contextlib.nullcontext():
        model(batch(micro, rank, width=8)).pow(2).mean().backward()
    if micro % 2 == 1:
        optimizer.step()
        optimizer.zero_grad()
finish(model)
