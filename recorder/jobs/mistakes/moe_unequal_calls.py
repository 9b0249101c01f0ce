"""DeepSpeed #5794: a rank whose tokens need no expert leaves out an all_to_all.

(TrainCheck: deepspeed-5794.)
"""

import torch
import torch.distributed as dist
from job import batch, begin, finish
from torch import nn

EXPECT = r"(collective\.|missing|left out|all_to_all)"

rank, world = begin(10)
torch.manual_seed(7)
model = nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-1)
for step in range(4):
    optimizer.zero_grad()
    hidden = model(batch(step, rank, rows=4, width=8))
    if not (step == 2 and rank == 1):  # "no token for another rank"
        received = torch.empty_like(hidden)
        dist.all_to_all_single(received, hidden.detach())
    hidden.pow(2).mean().backward()
    for param in model.parameters():
        dist.all_reduce(param.grad)
    optimizer.step()
finish(model)
