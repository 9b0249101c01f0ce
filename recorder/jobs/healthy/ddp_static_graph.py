"""DDP with static_graph and several buckets, which are rebuilt at the third forward."""

import sys

import torch
from job import batch, begin, finish
from models import Net
from torch.nn.parallel import DistributedDataParallel

ARGUMENTS = ("", "view")

rank, _ = begin()
torch.manual_seed(7)
is_view = "view" in sys.argv
model = DistributedDataParallel(
    Net(3), static_graph=True, bucket_cap_mb=2 / 1024, gradient_as_bucket_view=is_view
)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for step in range(6):
    optimizer.zero_grad()
    model(batch(step, rank, width=8)).pow(2).mean().backward()
    optimizer.step()
finish(model)
