"""DDP with LBFGS: the optimizer calls forward and backward several times inside its step."""

import torch
from job import batch, begin, finish
from models import Net
from torch.nn.parallel import DistributedDataParallel

rank, _ = begin()
torch.manual_seed(7)
model = DistributedDataParallel(Net(1))
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=3)


def closure(x):
    """One evaluation."""
    optimizer.zero_grad()
    loss = model(x).pow(2).mean()
    loss.backward()
    return loss


for step in range(3):
    data = batch(step, rank, width=8)
    optimizer.step(lambda data=data: closure(data))
finish(model)
