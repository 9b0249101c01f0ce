"""Data parallel by hand: one flat all-reduce of all gradients after the backward."""

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
    flat = torch.cat([param.grad.view(-1) for param in model.parameters()])
    dist.all_reduce(flat)
    at = 0
    for param in model.parameters():
        param.grad.copy_(flat[at : at + param.numel()].view_as(param) / world)
        at += param.numel()
    optimizer.step()
finish(model)
