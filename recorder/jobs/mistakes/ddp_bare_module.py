"""minimind #853, openvla-oft #160, sd-scripts #924: the forward is that of the bare module.

DDP does not reduce any gradient.

(TrainCheck: x-jxmnop-ddp-out-of-sync.)
"""

import torch
from job import batch, begin, finish
from models import Net
from torch.nn.parallel import DistributedDataParallel

EXPECT = r"(no collective|not reduced|no_reduction|never reduced|no reduction|bare)"

rank, _ = begin()
torch.manual_seed(7)
model = DistributedDataParallel(Net())
optimizer = torch.optim.SGD(model.parameters(), lr=1e-1)
for step in range(4):
    optimizer.zero_grad()
    model.module(batch(step, rank, width=8)).pow(2).mean().backward()
    optimizer.step()
finish(model)
