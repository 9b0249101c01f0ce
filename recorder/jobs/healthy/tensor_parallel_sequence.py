"""Tensor parallelism with sequence-parallel norms and a loss over sharded logits."""

import torch
from job import batch, begin, finish, need
from torch import nn
from torch.distributed.device_mesh import init_device_mesh

need(torch_version=(2, 7))
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)


class Feed(nn.Module):
    """Tokens to logits: a norm, two layers and a head."""

    def __init__(self):
        super().__init__()
        self.inp, self.norm = nn.Linear(8, 8), nn.LayerNorm(8)
        self.up, self.down, self.head = nn.Linear(8, 16), nn.Linear(16, 8), nn.Linear(8, 12)

    def forward(self, x):
        h = self.inp(x)
        return self.head(h + self.down(torch.relu(self.up(self.norm(h)))))


rank, world = begin()
torch.manual_seed(7)
mesh = init_device_mesh("cpu", (world,))
model = Feed()
parallelize_module(
    model,
    mesh,
    {
        "inp": ColwiseParallel(output_layouts=Shard(1), input_layouts=Replicate()),
        "norm": SequenceParallel(),
        "up": ColwiseParallel(input_layouts=Shard(1)),
        "down": RowwiseParallel(output_layouts=Shard(1)),
        "head": ColwiseParallel(input_layouts=Shard(1), use_local_output=False),
    },
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, foreach=False)
for step in range(3):
    optimizer.zero_grad()
    tokens = batch(step, rows=4, width=8).view(1, 4, 8)
    wanted = torch.arange(4) % 12
    with loss_parallel():
        loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), wanted)
        loss.backward()
    optimizer.step()
finish(model)
