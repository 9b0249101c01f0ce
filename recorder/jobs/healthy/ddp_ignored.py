"""DDP that ignores one layer, which each rank trains for itself."""

import torch
from job import batch, begin, finish
from models import Net
from torch.nn.parallel import DistributedDataParallel

rank, _ = begin()
torch.manual_seed(7)
net = Net()
DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(
    net, ["head.weight", "head.bias"]
)
model = DistributedDataParallel(net)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for step in range(4):
    optimizer.zero_grad()
    model(batch(step, rank, width=8)).pow(2).mean().backward()
    optimizer.step()
finish(model)
