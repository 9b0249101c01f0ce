"""Collectives of overlapping groups, issued in different orders by ranks that share no group."""

import torch
import torch.distributed as dist
from job import batch, begin, finish
from torch import nn

WORLD = 4

rank, world = begin()
torch.manual_seed(7)
pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]
crossed = [dist.new_group([0, 2]), dist.new_group([1, 3])]
model = nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for step in range(3):
    optimizer.zero_grad()
    model(batch(step, rank, width=8)).pow(2).mean().backward()
    if rank < 2:  # only one pair counts something more
        dist.all_reduce(torch.ones(step + 1), group=pairs[0])
    for param in model.parameters():
        dist.all_reduce(param.grad, group=pairs[rank // 2])
        dist.all_reduce(param.grad, group=crossed[rank % 2])
    optimizer.step()
finish(model)
