"""PyTorch #158719: stochastic depth with a random generator of each rank, under FSDP2."""

import torch
from job import batch, begin, finish
from models import Net
from shards import shard

EXPECT = r"(blocks\.\d|collective\.|gather)"


class Stochastic(Net):
    """Leaves out a block that is drawn by chance."""

    def __init__(self, rank):
        super().__init__(3)
        self.draw = torch.Generator().manual_seed(40 + rank)

    def forward(self, x):
        h = self.inp(x)
        for block in self.blocks:
            if torch.rand((), generator=self.draw) > 0.4:
                h = block(h)
        return self.head(self.norm(h))


rank, _ = begin(10)
torch.manual_seed(7)
model = shard(Stochastic(rank))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-1)
for step in range(4):
    optimizer.zero_grad()
    model(batch(step, rank, width=8)).pow(2).mean().backward()
    optimizer.step()
finish(model)
