"""Saved activations that wait on the host (save_on_cpu), under DDP and FSDP2."""

import sys

import torch
from job import batch, begin, finish
from models import Net
from shards import shard
from torch.autograd.graph import save_on_cpu
from torch.nn.parallel import DistributedDataParallel

ARGUMENTS = ("ddp", "fsdp2")

rank, _ = begin()
torch.manual_seed(7)
model = Net()
model = shard(model) if sys.argv[1] == "fsdp2" else DistributedDataParallel(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for step in range(4):
    optimizer.zero_grad()
    with save_on_cpu():
        loss = model(batch(step, rank, width=8)).pow(2).mean()
    loss.backward()
    optimizer.step()
finish(model)
