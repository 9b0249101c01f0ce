"""DDP with ZeroRedundancyOptimizer: each rank updates a part, and broadcasts it."""

import torch
from job import batch, begin, finish
from models import Net
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

rank, _ = begin()
torch.manual_seed(7)
model = DistributedDataParallel(Net())
optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=1e-2)
for step in range(4):
    optimizer.zero_grad()
    model(batch(step, rank, width=8)).pow(2).mean().backward()
    optimizer.step()
finish(model)
