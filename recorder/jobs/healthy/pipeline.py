"""torch.distributed.pipelining: GPipe or 1F1B, one stage a rank."""

import sys

import torch
import torch.distributed as dist
from job import batch, begin, finish, need
from torch import nn

need(torch_version=(2, 7))
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

ARGUMENTS = ("gpipe", "1f1b", "gpipe 4", "1f1b 4")
WORLD = 2

rank, world = begin()
torch.manual_seed(7)
layers = [nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in range(world)]
part = layers[rank]
stage = PipelineStage(part, rank, world, torch.device("cpu"), input_args=(torch.zeros(2, 8),))
make = ScheduleGPipe if "gpipe" in sys.argv else Schedule1F1B
schedule = make(stage, n_microbatches=4, loss_fn=lambda got, wanted: (got - wanted).pow(2).mean())
optimizer = torch.optim.AdamW(part.parameters(), lr=1e-2)
for step in range(3):
    x = batch(step, 0, rows=8, width=8)
    if rank == 0:
        schedule.step(x)
    elif rank == world - 1:
        schedule.step(target=x)
    else:
        schedule.step()
    optimizer.step()
    optimizer.zero_grad()
dist.barrier()
finish(part)
