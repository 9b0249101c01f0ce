"""DDP over a frozen backbone and a trained head."""

import torch
from job import batch, begin, finish
from models import Net
from torch.nn.parallel import DistributedDataParallel

rank, _ = begin()
torch.manual_seed(7)
net = Net()
net.requires_grad_(False)
net.head.requires_grad_(True)
model = DistributedDataParallel(net)
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
for step in range(4):
    model(batch(step, rank, width=8)).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)
finish(model)
