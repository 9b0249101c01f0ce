"""DDP over blocks under activation checkpoints of either kind."""

import sys

import torch
from job import batch, begin, finish
from models import Checkpointed
from torch.nn.parallel import DistributedDataParallel

ARGUMENTS = ("reentrant", "nonreentrant")

rank, _ = begin()
torch.manual_seed(7)
is_reentrant = sys.argv[1] == "reentrant"
model = DistributedDataParallel(Checkpointed(is_reentrant), bucket_cap_mb=0.25 / 1024)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for step in range(4):
    optimizer.zero_grad()
    model(batch(step, rank)).backward()
    optimizer.step()
finish(model)
