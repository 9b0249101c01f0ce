"""FSDP2, a unit a block, with gradient clipping; parameters kept after the forward or not."""

import sys

import torch
from job import batch, begin, finish
from models import Net
from shards import shard

ARGUMENTS = ("", "keep")

rank, _ = begin()
torch.manual_seed(7)
model = shard(Net(3), reshard_after_forward="keep" not in sys.argv)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for step in range(4):
    optimizer.zero_grad()
    model(batch(step, rank, width=8)).pow(2).mean().backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
finish(model)
