"""accelerate #2665: the optimizer was made before the model was replaced; it holds other tensors.

(TrainCheck: AC-2665.)
"""

import copy

import torch
from job import batch, begin, finish
from models import Net
from torch.nn.parallel import DistributedDataParallel

EXPECT = r"(optimizer).*(not|no |other|none|unknown|never)"

rank, _ = begin()
torch.manual_seed(7)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=1e-1)
model = DistributedDataParallel(copy.deepcopy(net))
for step in range(4):
    optimizer.zero_grad()
    model(batch(step, rank, width=8)).pow(2).mean().backward()
    optimizer.step()
finish(model)
