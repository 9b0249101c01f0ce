"""Two pipelines of two stages side by side: 1F1B, and DDP over the stages of one number."""

import torch
from job import batch, begin, finish, need
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.parallel import DistributedDataParallel

need(torch_version=(2, 7))
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

WORLD = 4

rank, world = begin()
torch.manual_seed(7)
mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "pp"))
number = mesh["pp"].get_local_rank()
layers = [nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in range(2)]
# The buckets of a stage cannot be rebuilt: a step has as many forwards as micro-batches.
part = DistributedDataParallel(
    layers[number], process_group=mesh["dp"].get_group(), find_unused_parameters=True
)
stage = PipelineStage(part, number, 2, torch.device("cpu"), group=mesh["pp"].get_group())
schedule = Schedule1F1B(
    stage, n_microbatches=2, loss_fn=lambda got, wanted: (got - wanted).pow(2).mean()
)
optimizer = torch.optim.AdamW(part.parameters(), lr=1e-2)
for step in range(3):
    x = batch(step, rank // 2, rows=4, width=8)
    if number == 0:
        schedule.step(x)
    else:
        schedule.step(target=x)
    optimizer.step()
    optimizer.zero_grad()
finish(part)
