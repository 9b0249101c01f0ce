"""PyTorch #54059, particleflow #233: rank 0 alone evaluates, with an all-reduce in it."""

import torch
import torch.distributed as dist
from job import batch, begin, finish
from models import Net
from torch.nn.parallel import DistributedDataParallel

EXPECT = r"(collective\.|missing|left out|differs|met)"

rank, _ = begin(10)
torch.manual_seed(7)
model = DistributedDataParallel(Net())
optimizer = torch.optim.SGD(model.parameters(), lr=1e-1)
for step in range(4):
    optimizer.zero_grad()
    model(batch(step, rank, width=8)).pow(2).mean().backward()
    optimizer.step()
    if step == 1 and rank == 0:
        with torch.no_grad():
            total = model(batch(90, rank, width=8)).pow(2).mean()
        dist.all_reduce(total)
finish(model)
