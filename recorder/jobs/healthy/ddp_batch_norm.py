"""DDP over batch norms, whose buffers rank 0 broadcasts before each forward."""

import torch
from job import batch, begin, finish
from torch import nn
from torch.nn.parallel import DistributedDataParallel

rank, _ = begin()
torch.manual_seed(7)
net = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 4))
model = DistributedDataParallel(net)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for step in range(4):
    optimizer.zero_grad()
    model(batch(step, rank, rows=4, width=8)).pow(2).mean().backward()
    optimizer.step()
finish(model, list(model.buffers()))
