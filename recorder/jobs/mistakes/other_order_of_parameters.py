"""DeepSpeed #2343, apex #19: gradients are reduced by hand in the order of a set of each rank."""

import torch
import torch.distributed as dist
from job import batch, begin, finish
from models import Square

EXPECT = r"(collective\.|order|swap|l[123])"

rank, world = begin(10)
torch.manual_seed(7)
model = Square()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-1)
for step in range(4):
    optimizer.zero_grad()
    model(batch(step, rank)).backward()
    params = list(model.named_parameters())
    if rank == 1:
        params[0], params[1] = params[1], params[0]
    for _, param in params:
        dist.all_reduce(param.grad)
        param.grad /= world
    optimizer.step()
finish(model)
