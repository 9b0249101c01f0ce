"""Every rank ends by the same exception, after three good steps."""

import torch
from job import batch, begin
from models import Net
from torch.nn.parallel import DistributedDataParallel

EXPECT = r"(RuntimeError|uncaught|exception)"

rank, _ = begin(10)
torch.manual_seed(7)
model = DistributedDataParallel(Net())
optimizer = torch.optim.SGD(model.parameters(), lr=1e-1)
for step in range(3):
    optimizer.zero_grad()
    model(batch(step, rank, width=8)).pow(2).mean().backward()
    optimizer.step()
raise RuntimeError("the checkpoint's folder is full")
