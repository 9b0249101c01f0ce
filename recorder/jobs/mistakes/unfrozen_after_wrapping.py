"""detectron2 #2486, transformers #416: layers are unfrozen after DDP was made."""

import torch
from job import batch, begin, finish
from models import Net
from torch.nn.parallel import DistributedDataParallel

EXPECT = r"(head|blocks|inp).*|requires_grad|unfroz"

rank, _ = begin()
torch.manual_seed(7)
net = Net()
net.head.requires_grad_(False)
model = DistributedDataParallel(net)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-1)
for step in range(6):
    if step == 2:
        net.head.requires_grad_(True)
    optimizer.zero_grad()
    model(batch(step, rank, width=8)).pow(2).mean().backward()
    optimizer.step()
finish(model)
