"""DTensor tensor parallel: column and row parallel layers, or sequence parallel norms too."""

import sys

import torch
import torch.distributed as dist
from job import batch, begin, finish, need
from models import Net
from torch.distributed.device_mesh import init_device_mesh

need(torch_version=(2, 7))
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor import parallel as tp

ARGUMENTS = ("", "sequence")

rank, world = begin()
torch.manual_seed(7)
mesh = init_device_mesh("cpu", (world,), mesh_dim_names=("tp",))
model = Net()
plan = {}
for number in range(len(model.blocks)):
    plan[f"blocks.{number}.a"] = tp.ColwiseParallel()
    plan[f"blocks.{number}.b"] = tp.RowwiseParallel()
if "sequence" in sys.argv:
    plan["norm"] = tp.SequenceParallel(sequence_dim=0)
    plan["head"] = tp.PrepareModuleInput(
        input_layouts=(Shard(0),), desired_input_layouts=(Replicate(),), use_local_output=True
    )
tp.parallelize_module(model, mesh, plan)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, foreach=False)
for step in range(3):
    optimizer.zero_grad()
    model(batch(step, 0, rows=4, width=8)).pow(2).mean().backward()
    optimizer.step()
dist.barrier()
finish(model)
