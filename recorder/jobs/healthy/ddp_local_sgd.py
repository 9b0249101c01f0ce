"""Local SGD: gradients stay on their rank, and parameters are averaged every second step."""

import torch
from job import batch, begin, finish
from models import Net
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager

rank, _ = begin()
torch.manual_seed(7)
model = Net()
averager = PeriodicModelAverager(period=2, warmup_steps=0)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for step in range(6):
    optimizer.zero_grad()
    model(batch(step, rank, width=8)).pow(2).mean().backward()
    optimizer.step()
    averager.average_parameters(model.parameters())
finish(model)
