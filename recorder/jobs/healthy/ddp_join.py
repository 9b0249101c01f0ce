"""DDP under join: one rank has fewer batches than the other."""

import torch
from job import batch, begin, finish
from models import Net
from torch.nn.parallel import DistributedDataParallel

rank, _ = begin()
torch.manual_seed(7)
model = DistributedDataParallel(Net(), bucket_cap_mb=2 / 1024)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
with model.join():
    for step in range(3 + rank):
        optimizer.zero_grad()
        model(batch(step, rank, width=8)).pow(2).mean().backward()
        optimizer.step()
finish(model)
