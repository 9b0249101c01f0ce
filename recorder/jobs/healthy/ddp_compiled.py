"""A compiled module in DDP, and DDP compiled as a whole."""

import sys

import torch
from job import batch, begin, finish, need
from models import Net
from torch.nn.parallel import DistributedDataParallel

ARGUMENTS = ("inner aot_eager", "outer aot_eager", "inner inductor", "outer inductor")

need(torch_version=(2, 7))
rank, _ = begin(240)
torch.manual_seed(7)
order, backend = sys.argv[1:3]
net = Net(3, width=256)  # more than the first bucket, which the compiler wants to be the smallest
if order == "inner":
    model = DistributedDataParallel(torch.compile(net, backend=backend), bucket_cap_mb=1)
else:
    model = torch.compile(DistributedDataParallel(net, bucket_cap_mb=1), backend=backend)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-2)
for step in range(5):
    optimizer.zero_grad()
    model(batch(step, rank, width=8)).pow(2).mean().backward()
    optimizer.step()
finish(net)
