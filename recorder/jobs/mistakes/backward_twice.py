"""PyTorch #47260 kind: backward is called twice over one forward of DDP.

The reducer was armed once: what the second backward adds is never reduced.
"""

import torch
from job import batch, begin, finish
from models import Net
from torch.nn.parallel import DistributedDataParallel

EXPECT = r"(twice|two backwards|2 backwards|no_reduction|not reduced)"

rank, _ = begin(10)
torch.manual_seed(7)
model = DistributedDataParallel(Net())
optimizer = torch.optim.SGD(model.parameters(), lr=1e-1)
for step in range(4):
    optimizer.zero_grad()
    loss = model(batch(step, rank, width=8)).pow(2).mean()
    loss.backward(retain_graph=True)
    loss.backward()
    optimizer.step()
finish(model)
