"""Gradients are reduced asynchronously and waited for in another order; some by all_gather."""

import torch
import torch.distributed as dist
from job import batch, begin, finish
from models import Net

rank, world = begin()
torch.manual_seed(7)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for step in range(4):
    optimizer.zero_grad()
    model(batch(step, rank, width=8)).pow(2).mean().backward()
    works = [dist.all_reduce(param.grad, async_op=True) for param in model.parameters()]
    for work in reversed(works):
        work.wait()
    optimizer.step()
    shares = torch.empty(2 * world, 4)
    dist.all_gather_into_tensor(shares, model.head(torch.zeros(2, 16)).detach())
    part = torch.empty(2, 4)
    dist.reduce_scatter_tensor(part, shares)
    dist.all_reduce_coalesced([part, shares])
finish(model)
