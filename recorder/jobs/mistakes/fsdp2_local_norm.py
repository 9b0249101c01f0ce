"""PyTorch #170862, AReaL #312, RLinf #1542: clipping uses the norm of the local shard."""

import torch
from job import batch, begin, finish
from models import Net
from shards import shard

EXPECT = r"(clip|norm)"
RECORDER = "--numbers"

rank, _ = begin()
torch.manual_seed(7)
model = shard(Net())
optimizer = torch.optim.SGD(model.parameters(), lr=1e-1)
for step in range(4):
    optimizer.zero_grad()
    model(batch(step, rank, width=8)).pow(2).sum().backward()
    shards = [param.grad.to_local() for param in model.parameters()]
    norm = torch.stack([grad.norm() for grad in shards]).norm()
    for grad in shards:
        grad.mul_((0.1 / norm).clamp(max=1))
    optimizer.step()
finish(model)
