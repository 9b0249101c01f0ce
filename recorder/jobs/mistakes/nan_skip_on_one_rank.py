"""Automodel #2468, WeatherGenerator #2718: one rank skips a batch whose loss is not finite."""

import torch
from job import batch, begin, finish
from models import Net
from torch.nn.parallel import DistributedDataParallel

EXPECT = r"(collective\.|missing|left out|waits)"

rank, _ = begin(10)
torch.manual_seed(7)
model = DistributedDataParallel(Net())
optimizer = torch.optim.SGD(model.parameters(), lr=1e-1)
for step in range(4):
    optimizer.zero_grad()
    loss = model(batch(step, rank, width=8)).pow(2).mean()
    if rank == 1 and step == 2:
        loss = loss * float("nan")
    if not torch.isfinite(loss):
        continue
    loss.backward()
    optimizer.step()
finish(model)
