"""FSDP2 over two dimensions: sharded inside pairs, replicated between them."""

import torch
from job import batch, begin, finish
from models import Net
from shards import shard
from torch.distributed.device_mesh import init_device_mesh

WORLD = 4

rank, _ = begin()
torch.manual_seed(7)
mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
model = shard(Net(), mesh)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for step in range(3):
    optimizer.zero_grad()
    model(batch(step, rank, width=8)).pow(2).mean().backward()
    optimizer.step()
finish(model)
