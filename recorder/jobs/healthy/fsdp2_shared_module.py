"""FSDP2 with a block that the forward uses twice."""

import torch
from job import batch, begin, finish
from models import Net
from shards import shard


class Twice(Net):
    """The first block runs again after the last."""

    def forward(self, x):
        h = self.inp(x)
        for block in (*self.blocks, self.blocks[0]):
            h = block(h)
        return self.head(self.norm(h))


rank, _ = begin()
torch.manual_seed(7)
model = shard(Twice())
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for step in range(4):
    optimizer.zero_grad()
    model(batch(step, rank, width=8)).pow(2).mean().backward()
    optimizer.step()
finish(model)
