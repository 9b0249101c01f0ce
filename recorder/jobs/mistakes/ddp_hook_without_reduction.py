"""A communication hook that compresses and returns its bucket, and never reduces it (S2)."""

import torch
from job import batch, begin, finish
from models import Net
from torch.nn.parallel import DistributedDataParallel

EXPECT = r"(no collective|not reduced|no_reduction|never reduced|no reduction)"


def compress_only(_, bucket):
    """What a user forgot: the all-reduce."""
    future = torch.futures.Future()
    future.set_result(bucket.buffer().half().float())
    return future


rank, _ = begin()
torch.manual_seed(7)
model = DistributedDataParallel(Net())
model.register_comm_hook(None, compress_only)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-1)
for step in range(4):
    optimizer.zero_grad()
    model(batch(step, rank, width=8)).pow(2).mean().backward()
    optimizer.step()
finish(model)
