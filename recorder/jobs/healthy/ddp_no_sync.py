"""DDP that adds up three micro-batches a step, two of them under no_sync."""

import contextlib

import torch
from job import batch, begin, finish
from models import Net
from torch.nn.parallel import DistributedDataParallel

rank, _ = begin()
torch.manual_seed(7)
model = DistributedDataParallel(Net(), bucket_cap_mb=2 / 1024)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for step in range(3):
    for micro in range(3):
        with model.no_sync() if micro < 2 else contextlib.nullcontext():
            loss = model(batch(3 * step + micro, rank, width=8)).pow(2).mean() / 3
            loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
finish(model)
