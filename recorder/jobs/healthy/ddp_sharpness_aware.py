"""DDP with sharpness-aware minimisation: a first backward without synchronisation, then the step's own."""

import torch
from job import batch, begin, finish
from models import Net
from torch.nn.parallel import DistributedDataParallel

RECORDER = "--numbers"

rank, _ = begin()
torch.manual_seed(7)
model = DistributedDataParallel(Net(), bucket_cap_mb=2 / 1024)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
for step in range(4):
    x = batch(step, rank, width=8)
    with model.no_sync():
        model(x).pow(2).mean().backward()
    kept = [param.detach().clone() for param in model.parameters()]
    with torch.no_grad():
        ascent = [0.05 * param.grad / (param.grad.norm() + 1e-6) for param in model.parameters()]
        torch._foreach_add_(list(model.parameters()), ascent)
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    with torch.no_grad():
        torch._foreach_copy_(list(model.parameters()), kept)
    optimizer.step()
    optimizer.zero_grad()
finish(model)
