"""DDP with find_unused_parameters: each rank takes another branch in each step."""

import torch
from job import batch, begin, finish
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Branches(nn.Module):
    """A trunk, and two heads of which a batch takes one."""

    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(8, 16)
        self.heads = nn.ModuleList(nn.Linear(16, 4) for _ in range(2))

    def forward(self, x, number):
        return self.heads[number](torch.tanh(self.trunk(x)))


rank, _ = begin()
torch.manual_seed(7)
model = DistributedDataParallel(Branches(), find_unused_parameters=True, bucket_cap_mb=1 / 1024)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for step in range(5):
    optimizer.zero_grad()
    model(batch(step, rank, width=8), (step + rank) % 2).pow(2).mean().backward()
    optimizer.step()
finish(model)
