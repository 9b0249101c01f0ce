"""DDP: two losses of one forward, the first backward under no_sync and with retain_graph."""

import torch
from job import batch, begin, finish
from models import TwoHeads
from torch.nn.parallel import DistributedDataParallel

rank, _ = begin()
torch.manual_seed(7)
model = DistributedDataParallel(TwoHeads())
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for step in range(4):
    optimizer.zero_grad()
    first, second = model(batch(step, rank))
    (first + second).backward()
    optimizer.step()
finish(model)
