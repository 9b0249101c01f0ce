"""flow_grpo #245: an adapter is enabled on one rank only, before DDP is made."""

import torch
from job import batch, begin, finish
from models import Net
from torch.nn.parallel import DistributedDataParallel

EXPECT = r"(expects same model|trainable|requires_grad)"

rank, _ = begin(10)
torch.manual_seed(7)
net = Net()
net.inp.requires_grad_(rank == 0)
model = DistributedDataParallel(net)
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=1e-1)
for step in range(4):
    optimizer.zero_grad()
    model(batch(step, rank, width=8)).pow(2).mean().backward()
    optimizer.step()
finish(model)
