"""FSDP2 whose blocks are compiled before they become units."""

import sys

import torch
from job import batch, begin, finish
from models import Net
from shards import shard

ARGUMENTS = ("aot_eager", "inductor")

rank, _ = begin(240)
torch.manual_seed(7)
net = Net(3)
for block in net.blocks:
    block.compile(backend=sys.argv[1])
model = shard(net)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for step in range(4):
    optimizer.zero_grad()
    model(batch(step, rank, width=8)).pow(2).mean().backward()
    optimizer.step()
finish(model)
