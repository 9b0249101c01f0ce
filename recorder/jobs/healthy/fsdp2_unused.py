"""FSDP2 with two experts of which every rank uses the same one in a step."""

import torch
from job import batch, begin, finish
from models import Net
from shards import shard


class Chosen(Net):
    """One of the blocks runs."""

    def forward(self, x, number):
        return self.head(self.norm(self.blocks[number](self.inp(x))))


rank, _ = begin()
torch.manual_seed(7)
model = shard(Chosen())
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for step in range(4):
    optimizer.zero_grad()
    model(batch(step, rank, width=8), step % 2).pow(2).mean().backward()
    optimizer.step()
finish(model)
