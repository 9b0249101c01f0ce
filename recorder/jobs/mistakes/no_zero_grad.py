"""Stack Overflow 60335387: no zero_grad, so each step uses the sum of all gradients so far.

(TrainCheck: stackoverflow-60335387.)
"""

import torch
from job import batch, begin, finish
from models import Net
from torch.nn.parallel import DistributedDataParallel

EXPECT = r"(zero_grad|never (zeroed|cleared)|add(s|ed)? up)"

rank, _ = begin()
torch.manual_seed(7)
model = DistributedDataParallel(Net())
optimizer = torch.optim.SGD(model.parameters(), lr=1e-1)
for step in range(4):
    model(batch(step, rank, width=8)).pow(2).mean().backward()
    optimizer.step()
finish(model)
