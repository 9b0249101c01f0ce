"""DDP with one optimizer for matrices and one for vectors, and a learning rate schedule."""

import torch
from job import batch, begin, finish
from models import Net
from torch.nn.parallel import DistributedDataParallel

rank, _ = begin()
torch.manual_seed(7)
model = DistributedDataParallel(Net())
optimizers = [
    torch.optim.SGD([p for p in model.parameters() if p.ndim == 2], lr=1e-2, momentum=0.9),
    torch.optim.AdamW([p for p in model.parameters() if p.ndim < 2], lr=1e-2),
]
schedules = [torch.optim.lr_scheduler.StepLR(optimizer, 2) for optimizer in optimizers]
for step in range(5):
    model(batch(step, rank, width=8)).pow(2).mean().backward()
    for part in (*optimizers, *schedules):
        part.step()
    for optimizer in optimizers:
        optimizer.zero_grad()
finish(model)
