"""PyTorch forum 84911: a filter by name freezes everything but a norm layer.

(TrainCheck: pytorch-forum-84911.)
"""

import torch
from job import batch, begin, finish
from models import Net
from torch.nn.parallel import DistributedDataParallel

EXPECT = r"(frozen|trains only|only .*(norm|trained|trainable)|requires_grad)"

rank, _ = begin()
torch.manual_seed(7)
net = Net()
for name, param in net.named_parameters():
    param.requires_grad_("norm" in name)
model = DistributedDataParallel(net)
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=1e-1)
for step in range(4):
    optimizer.zero_grad()
    model(batch(step, rank, width=8)).pow(2).mean().backward()
    optimizer.step()
finish(model)
