"""torch.distributed.pipelining with two stages a rank: interleaved 1F1B, looped BFS, zero bubble."""

import sys

import torch
from job import batch, begin, finish, need
from torch import nn

need(torch_version=(2, 7))
from torch.distributed.pipelining import (
    PipelineStage,
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
    ScheduleLoopedBFS,
)

SCHEDULES = {
    "1f1b": ScheduleInterleaved1F1B,
    "bfs": ScheduleLoopedBFS,
    "zero_bubble": ScheduleInterleavedZeroBubble,
}
ARGUMENTS = ("1f1b", "bfs", "zero_bubble")

rank, world = begin()
torch.manual_seed(7)
layers = [nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in range(2 * world)]
mine = [rank, rank + world]
stages = [
    PipelineStage(layers[at], at, 2 * world, torch.device("cpu"), input_args=(torch.zeros(2, 8),))
    for at in mine
]
schedule = SCHEDULES[sys.argv[1]](
    stages, n_microbatches=4, loss_fn=lambda got, wanted: (got - wanted).pow(2).mean()
)
parts = nn.ModuleList(layers[at] for at in mine)
optimizer = torch.optim.AdamW(parts.parameters(), lr=1e-2)
for step in range(3):
    optimizer.zero_grad()
    x = batch(step, 0, rows=8, width=8)
    inputs = (x,) if rank == 0 else ()
    schedule.step(*inputs, target=x if rank == world - 1 else None)
    optimizer.step()
finish(parts)
