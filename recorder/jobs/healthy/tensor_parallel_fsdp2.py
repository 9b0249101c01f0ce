"""Two dimensions: tensor parallel inside pairs, FSDP2 between them."""

import torch
from job import batch, begin, finish
from models import Net
from shards import shard
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import parallel as tp

WORLD = 4

rank, _ = begin()
torch.manual_seed(7)
mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
model = Net()
for block in model.blocks:
    tp.parallelize_module(block, mesh["tp"], {"a": tp.ColwiseParallel(), "b": tp.RowwiseParallel()})
shard(model, mesh["dp"])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, foreach=False)
for step in range(3):
    optimizer.zero_grad()
    model(batch(step, rank // 2, width=8)).pow(2).mean().backward()
    optimizer.step()
finish(model)
