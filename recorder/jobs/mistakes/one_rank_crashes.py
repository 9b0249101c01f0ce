"""A batch that cannot be read raises on one rank; the other loses its peer."""

import torch
from job import batch, begin, finish
from models import Net
from torch.nn.parallel import DistributedDataParallel

EXPECT = r"(rank 1|KeyError|uncaught|exception)"

rank, _ = begin(10)
torch.manual_seed(7)
model = DistributedDataParallel(Net())
optimizer = torch.optim.SGD(model.parameters(), lr=1e-1)
for step in range(4):
    if (rank, step) == (1, 2):
        raise KeyError("image_17")
    optimizer.zero_grad()
    model(batch(step, rank, width=8)).pow(2).mean().backward()
    optimizer.step()
finish(model)
