"""DDP: a gradient penalty. The first backward keeps the graph, a second one goes through it."""

import torch
from job import batch, begin, finish
from models import Net
from torch.nn.parallel import DistributedDataParallel

ARGUMENTS = ("",)

rank, _ = begin()
torch.manual_seed(7)
model = DistributedDataParallel(Net())
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for step in range(4):
    x = batch(step, rank, width=8).requires_grad_()
    optimizer.zero_grad()
    y = model(x).pow(2).mean()
    (slope,) = torch.autograd.grad(y, x, create_graph=True)
    (y + (slope.norm() - 1).pow(2)).backward()
    optimizer.step()
finish(model)
