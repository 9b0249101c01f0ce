"""Objects and roots: broadcast, scatter, gather and reduce, of tensors and of Python objects."""

import torch
import torch.distributed as dist
from job import batch, begin, finish
from torch import nn

rank, world = begin()
torch.manual_seed(7 + rank)
model = nn.Linear(8, 8)
for param in model.parameters():
    dist.broadcast(param.data, 0)
said = [{"seed": 3, "note": "x" * 40}] if rank == 0 else [None]
dist.broadcast_object_list(said, 0)
mine = [None]
dist.scatter_object_list(mine, [list(range(n + 1)) for n in range(world)] if rank == 0 else None)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for step in range(3):
    x = torch.empty(2, 8)
    parts = [batch(step, n, width=8) for n in range(world)] if rank == 0 else None
    dist.scatter(x, parts, 0)
    optimizer.zero_grad()
    loss = model(x).pow(2).mean()
    loss.backward()
    for param in model.parameters():
        dist.all_reduce(param.grad)
    optimizer.step()
    loss = loss.detach()
    dist.reduce(loss, 0)
    gathered = [torch.empty(()) for _ in range(world)] if rank == 0 else None
    dist.gather(loss, gathered, 0)
    told = [None] * world
    dist.all_gather_object(told, {"rank": rank, "loss": float(loss) if rank == 0 else "?" * rank})
if rank == 0:
    parts = [None] * world
    dist.gather_object(mine, parts)
else:
    dist.gather_object(mine)
dist.monitored_barrier()
finish(model)
