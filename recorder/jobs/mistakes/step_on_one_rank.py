"""accelerate #2262: two processes, two models. Only the main process steps."""

import torch
from job import batch, begin, finish
from models import Net
from torch.nn.parallel import DistributedDataParallel

EXPECT = r"(step).*(rank|ranks)"

rank, _ = begin()
torch.manual_seed(7)
model = DistributedDataParallel(Net())
optimizer = torch.optim.SGD(model.parameters(), lr=1e-1)
for step in range(4):
    optimizer.zero_grad()
    model(batch(step, rank, width=8)).pow(2).mean().backward()
    if rank == 0:
        optimizer.step()
finish(model)
