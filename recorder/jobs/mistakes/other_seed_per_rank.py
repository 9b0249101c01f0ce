"""Gradients are averaged by hand, but each rank drew its weights with a seed of its own.

The ranks train different models with the same gradients. Needs --numbers.
"""

import torch
import torch.distributed as dist
from job import batch, begin, finish
from models import Net

EXPECT = r"(differ|diverge)"
RECORDER = "--numbers"

rank, world = begin()
torch.manual_seed(7 + rank)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-1)
for step in range(4):
    optimizer.zero_grad()
    model(batch(step, rank, width=8)).pow(2).mean().backward()
    for param in model.parameters():
        dist.all_reduce(param.grad)
        param.grad /= world
    optimizer.step()
finish(model)
