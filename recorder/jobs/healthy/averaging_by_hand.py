"""Ranks that train alone and average their parameters, or exchange outer gradients (DiLoCo)."""

import sys

import torch
import torch.distributed as dist
from job import batch, begin, finish
from models import Net

ARGUMENTS = ("average", "outer_gradient")
RECORDER = "--numbers"
INNER_STEPS = 3

rank, world = begin()
torch.manual_seed(7)
net = Net()
inner = torch.optim.AdamW(net.parameters(), lr=1e-2)
kept = [param.detach().clone().requires_grad_() for param in net.parameters()]
outer = torch.optim.SGD(kept, lr=0.7, momentum=0.9, nesterov=True)
for step in range(2 * INNER_STEPS):
    inner.zero_grad()
    net(batch(step, rank, width=8)).pow(2).mean().backward()
    inner.step()
    if (step + 1) % INNER_STEPS:
        continue
    with torch.no_grad():
        for param, old in zip(net.parameters(), kept):
            average = param / world
            dist.all_reduce(average)
            if sys.argv[1] == "average":
                param.copy_(average)
            else:
                old.grad = old - average
    if sys.argv[1] == "outer_gradient":
        outer.step()
        with torch.no_grad():
            for param, old in zip(net.parameters(), kept):
                param.copy_(old)
finish(net)
