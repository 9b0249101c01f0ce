"""FSDP2 over units that are partly and wholly frozen."""

import torch
from job import batch, begin, finish
from models import Net
from shards import shard

rank, _ = begin()
torch.manual_seed(7)
net = Net(3)
net.blocks[0].requires_grad_(False)
net.blocks[1].a.requires_grad_(False)
model = shard(net)
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
for step in range(4):
    optimizer.zero_grad()
    model(batch(step, rank, width=8)).pow(2).mean().backward()
    optimizer.step()
finish(model)
