"""DDP with a gradient scaler: in one step every rank overflows, and every rank skips it."""

import torch
from job import batch, begin, finish
from models import Net
from torch.nn.parallel import DistributedDataParallel

rank, _ = begin()
torch.manual_seed(7)
model = DistributedDataParallel(Net())
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
for step in range(4):
    optimizer.zero_grad()
    loss = model(batch(step, rank, width=8)).pow(2).mean()
    scaler.scale(loss * (float("inf") if step == 1 and rank == 0 else 1.0)).backward()
    scaler.step(optimizer)
    scaler.update()
finish(model)
