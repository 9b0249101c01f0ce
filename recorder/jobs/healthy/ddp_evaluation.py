"""DDP with an evaluation of the wrapped and of the bare module between the steps."""

import torch
import torch.distributed as dist
from job import batch, begin, finish
from models import Net
from torch.nn.parallel import DistributedDataParallel

rank, world = begin()
torch.manual_seed(7)
model = DistributedDataParallel(Net())
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for step in range(4):
    model.train()
    optimizer.zero_grad()
    model(batch(step, rank, width=8)).pow(2).mean().backward()
    optimizer.step()
    model.eval()
    with torch.no_grad():
        total = model(batch(90, rank, width=8)).pow(2).mean()
        dist.all_reduce(total)
        if rank == 0:  # samples, on one rank only and past the wrapper
            model.module(batch(91, rank, width=8))
    dist.barrier()
finish(model)
