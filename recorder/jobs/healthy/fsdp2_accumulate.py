"""FSDP2 that adds up three micro-batches: set_requires_gradient_sync, parameters kept."""

import torch
from job import batch, begin, finish
from models import Net
from shards import shard

rank, _ = begin()
torch.manual_seed(7)
model = shard(Net(), reshard_after_forward=False)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for step in range(3):
    for micro in range(3):
        model.set_requires_gradient_sync(micro == 2)
        model.set_reshard_after_backward(micro == 2)
        (model(batch(3 * step + micro, rank, width=8)).pow(2).mean() / 3).backward()
    optimizer.step()
    optimizer.zero_grad()
finish(model)
